// Who is named, from measurements that were made up.
#include "burnin/verdict.h"

#include <gtest/gtest.h>

#include "burnin/comm_verdict.h"
#include "burnin/finding.h"

namespace hlat {
namespace {

TEST(BusFactor, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 2), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::send_recv, 4), 1);
}

TEST(SlowRanks, AreThoseWhoseBestIsBelowTheFastestsTypical) {
  EXPECT_EQ(slow_ranks({{100, 101}, {99, 100}, {50, 51}, {98, 99}}), std::vector<size_t>{2});
  EXPECT_TRUE(slow_ranks({{100, 100}, {90, 92}, {80, 80}}).empty()) << "within the factor";
  EXPECT_TRUE(slow_ranks({{100, 110}, {40, 95}}).empty()) << "disturbed, but once as fast as the other";
  EXPECT_TRUE(slow_ranks({{100, 100}}).empty()) << "nobody to compare with";
}

LinkTime link(const char* axis, int a, int b, double seconds) {
  return {.axis = axis, .a = a, .b = b, .typical = seconds, .best = seconds};
}

TEST(SlowPeers, ARankIsNamedWhenAllItsLinksAreSlow) {
  const auto ring = slow_peers({link("dp", 0, 1, 5e-3), link("dp", 1, 2, 4e-3), link("dp", 2, 3, 1e-3), link("dp", 3, 0, 1e-3)});
  ASSERT_EQ(ring.size(), 1u);
  EXPECT_EQ(ring[0].rank, 1);
  EXPECT_EQ(ring[0].other, -1);
  EXPECT_DOUBLE_EQ(ring[0].seconds, 4e-3);
  EXPECT_DOUBLE_EQ(ring[0].usual, 1e-3);
  const auto three = slow_peers({link("dp", 0, 1, 5e-3), link("dp", 1, 2, 4e-3), link("dp", 2, 0, 1e-3)});
  ASSERT_EQ(three.size(), 1u);
  EXPECT_EQ(three[0].rank, 1);
}

TEST(SlowPeers, GroupsOfTwoAreToldApartByTheOtherAxis) {
  const auto slow = slow_peers({link("tp", 0, 1, 9e-3), link("tp", 2, 3, 1e-3), link("dp", 0, 2, 2e-3), link("dp", 1, 3, 9e-3)});
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].rank, 1);
}

TEST(SlowPeers, ALinkBetweenSoundRanksIsNamedAsALink) {
  const auto slow = slow_peers({link("dp", 0, 1, 1e-3), link("dp", 1, 2, 9e-3), link("dp", 2, 3, 1e-3), link("dp", 3, 0, 1e-3)});
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].rank, 1);
  EXPECT_EQ(slow[0].other, 2);
}

TEST(SlowPeers, NeighboursThatAreBothSlowAreBothNamed) {
  const auto slow = slow_peers({link("dp", 0, 1, 9e-3), link("dp", 1, 2, 9e-3), link("dp", 2, 3, 9e-3), link("dp", 3, 4, 1e-3),
                                link("dp", 4, 5, 1e-3), link("dp", 5, 0, 1e-3)});
  ASSERT_EQ(slow.size(), 2u);
  EXPECT_EQ(slow[0].rank, 1);
  EXPECT_EQ(slow[1].rank, 2);
}

TEST(SlowPeers, NoiseAndTinyDelaysAreNot) {
  EXPECT_TRUE(slow_peers({link("dp", 0, 1, 1e-6), link("dp", 1, 2, 9e-6), link("dp", 2, 0, 1e-6)}).empty());
  EXPECT_TRUE(slow_peers({{.axis = "dp", .a = 0, .b = 1, .typical = 9e-3, .best = 1.5e-3}, link("dp", 1, 2, 1e-3)}).empty());
  EXPECT_TRUE(slow_peers({link("tp", 0, 1, 1e-3), link("dp", 0, 2, 9e-3)}).empty()) << "axes are not compared";
  const std::vector<LinkTime> waited = {link("dp", 0, 1, 1e-3), link("dp", 1, 2, 15e-3), link("dp", 2, 0, 1e-3)};
  EXPECT_EQ(slow_peers(waited).size(), 1u);
  EXPECT_TRUE(slow_peers(waited, kScheduledDelay).empty()) << "ranks that share cores wait for them";
}

TEST(WrongPeers, TheRankThatExplainsMostIsNamed) {
  const auto receiver = wrong_peers({{.from = 0, .to = 2}, {.from = 1, .to = 2}, {.from = 3, .to = 2}, {.from = 3, .to = 2}});
  ASSERT_EQ(receiver.size(), 1u);
  EXPECT_EQ(receiver[0].rank, 2);
  EXPECT_EQ(receiver[0].from, (std::vector<int>{0, 1, 3}));
  const auto sender = wrong_peers({{.from = 2, .to = 0}, {.from = 2, .to = 1}});
  ASSERT_EQ(sender.size(), 1u);
  EXPECT_EQ(sender[0].rank, 2);
  EXPECT_EQ(sender[0].to, (std::vector<int>{0, 1}));
  const auto single = wrong_peers({{.from = 1, .to = 0}});
  ASSERT_EQ(single.size(), 1u);
  EXPECT_EQ(single[0].rank, 0) << "of two the receiver, who names the other";
  EXPECT_EQ(wrong_peers({{.from = 0, .to = 1}, {.from = 2, .to = 3}}).size(), 2u);
}

TEST(Minorities, AreNamedWithWhatMostHave) {
  using Facts = std::map<std::string, std::string>;
  const auto found =
      minorities({Facts{{"mpi", "4.1"}, {"kernel", "6"}}, Facts{{"mpi", "4.1"}, {"kernel", "6"}}, Facts{{"mpi", "5.0"}, {"kernel", "6"}}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].fact, "mpi");
  EXPECT_EQ(found[0].usual, "4.1");
  EXPECT_EQ(found[0].others.at("5.0"), std::vector<size_t>{2});
  EXPECT_EQ(minorities({Facts{{"a", "y"}}, Facts{{"a", "x"}}})[0].usual, "y") << "of two the lower rank's";
}

const std::vector<std::string> kHosts = {"node-a", "node-a", "node-b", "node-b"};

WrongData wrong_data(int rank, int from, Collective op) {
  return {.axis = "dp", .op = op, .bytes = 1024, .element = 5, .rank = rank, .from = from, .got = 3, .known = 4};
}

TEST(CommVerdict, AReceiverOfWrongMessagesIsNamedAndSumsThatFollowAreNot) {
  std::vector<CommMeasured> all(4);
  for (const int from : {0, 1, 3}) all[2].wrong.push_back(wrong_data(2, from, Collective::all_gather));
  for (int r = 0; r < 4; ++r) all[static_cast<size_t>(r)].wrong.push_back(wrong_data(r, -1, Collective::all_reduce));
  const auto findings = judge_comm(all, kHosts, kLeastDelay);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].text(),
            "rank 2 on node-b: comm wrong: what comes from ranks 0, 1, 3: dp all_gather of 1.0 KiB: element 5 is 3, not 4");
}

TEST(CommVerdict, SumsAloneNameWhoHasThem) {
  std::vector<CommMeasured> all(4);
  all[1].wrong = {wrong_data(1, -1, Collective::all_reduce), wrong_data(1, -1, Collective::reduce_scatter)};
  const auto findings = judge_comm(all, kHosts, kLeastDelay);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rank, 1);
}

TEST(CommVerdict, RowsShowTheSlowestGroupAgainstTheBest) {
  const auto time = [](int group, double seconds) {
    return CommTime{
        .axis = "tp", .group = group, .ranks = 2, .op = Collective::all_gather, .bytes = 1 << 20, .typical = seconds, .best = seconds};
  };
  std::vector<CommMeasured> all(4);
  all[0].times = {time(0, 1e-3)};
  all[1].times = {time(0, 2e-3)};
  all[2].times = {time(2, 3e-3)};
  all[3].times = {time(2, 8e-3)};
  const auto rows = comm_rows(all);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_DOUBLE_EQ(rows[0].seconds, 8e-3) << "a group is as slow as its slowest rank";
  EXPECT_DOUBLE_EQ(rows[0].best_seconds, 2e-3);
  EXPECT_EQ(rows[0].slowest, 2);
  EXPECT_DOUBLE_EQ(rows[0].busbw(), 0.5 * (1 << 20) / 8e-3);
}

TEST(CheckReport, TheVerdictComesLastWithFaultsFirst) {
  CheckReport report{.parts = {{.name = "clock"}, {.name = "matmul"}}, .hosts = {"a", "b"}};
  EXPECT_EQ(report.verdict(), "all 2 ranks are well\n");
  report.parts[0].findings = {{.part = "clock", .rank = 1, .host = "b", .words = "is ahead", .severity = Severity::warning}};
  EXPECT_EQ(report.verdict(), "warning: rank 1 on b: clock is ahead\nall 2 ranks are well\n");
  EXPECT_TRUE(report.well());
  report.parts[1].findings = {{.part = "matmul", .rank = 0, .host = "a", .words = "wrong: x"}};
  EXPECT_FALSE(report.well());
  EXPECT_EQ(report.verdict(), "rank 0 on a: matmul wrong: x\nwarning: rank 1 on b: clock is ahead\n");
  EXPECT_EQ(report.json()["findings"][0]["rank"], 0);
}

}  // namespace
}  // namespace hlat
