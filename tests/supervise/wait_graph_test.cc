#include "supervise/wait_graph.h"

#include <gtest/gtest.h>

#include "supervise/fake_run.h"

namespace hlat {
namespace {

using Ranks = std::vector<int>;

// A rank that stands still before each of its instructions, in a mesh with all axes, is the one that is named.
void expect_named(bool stopped, bool names_peers) {
  const size_t length = FakeRun(2, 2, 2).length(0);
  for (int rank = 0; rank < 8; ++rank)
    for (size_t before = 0; before < length; ++before) {
      FakeRun run(2, 2, 2);
      run.names_peers = names_peers;
      run.hold(rank, before);
      if (stopped) run.view(rank).process = 'T';
      run.run();
      const WaitGraph graph = wait_graph(run.views());
      ASSERT_EQ(graph.culprits, Ranks{rank}) << "rank " << rank << " before " << before;
      ASSERT_TRUE(graph.cycles.empty()) << "rank " << rank << " before " << before;
      ASSERT_EQ(graph.waiting_for(rank).size(), 7u) << "rank " << rank << " before " << before;
    }
}

TEST(WaitGraph, NamesAStoppedRankWhereverItStopped) { expect_named(true, true); }
TEST(WaitGraph, NamesAStoppedRankWithoutKnownPeers) { expect_named(true, false); }
TEST(WaitGraph, NamesARankThatComputesForeverBehindItsQueue) { expect_named(false, true); }

TEST(WaitGraph, NamesTheRankInEachAxisWithTheOperationOfItsPeers) {
  for (const char* axis : {"tp", "pp", "dp"}) {
    FakeRun run(std::string(axis) == "tp" ? 2 : 1, std::string(axis) == "pp" ? 2 : 1, std::string(axis) == "dp" ? 2 : 1);
    run.hold(1, 1);
    run.view(1).process = 'T';
    run.run();
    const WaitGraph graph = wait_graph(run.views());
    ASSERT_EQ(graph.culprits, Ranks{1}) << axis;
    ASSERT_EQ(graph.waits.size(), 1u) << axis;
    EXPECT_EQ(graph.waits[0].group, axis);
  }
}

TEST(WaitGraph, AnOverlappedSumIsNoWaitUntilSomebodyWaitsForIt) {
  FakeRun run(2, 1, 2);
  run.view(3).process = 'T';
  run.hold(3, 4);  // before it queues its sum; rank 1 is its peer along dp, rank 2 along tp
  run.run();
  RankViews views = run.views();
  views[1]->groups[2].awaited = false;  // rank 1 still computes
  const WaitGraph graph = wait_graph(views);
  bool background = false;
  for (const Wait& w : graph.waits) background = background || (w.from == 1 && w.to == 3 && w.in_background);
  EXPECT_TRUE(background);
  EXPECT_FALSE(graph.blocked(1));
  EXPECT_TRUE(wait_graph(run.views()).blocked(1));
}

// Without tp ranks 0 and 2 are the stages of one replica; all that they send each other is lost in turn.
TEST(WaitGraph, ALostMessageIsACycleThatNamesItsSender) {
  int tried = 0;
  for (const int sender : {0, 2})
    for (size_t at = 0; at < FakeRun(1, 2, 2).length(sender); ++at) {
      if (FakeRun(1, 2, 2).instruction(sender, at).what != FakeRun::Do::send) continue;
      FakeRun run(1, 2, 2);
      run.drop(sender, at);
      run.run();
      const WaitGraph graph = wait_graph(run.views());
      ASSERT_EQ(graph.cycles.size(), 1u) << sender << " at " << at;
      const Wait* lost = graph.lost_in(graph.cycles[0], run.views());
      ASSERT_NE(lost, nullptr) << sender << " at " << at;
      EXPECT_EQ(lost->to, sender);
      EXPECT_EQ(lost->from, 2 - sender);
      ++tried;
    }
  EXPECT_EQ(tried, 4);
}

// Rank 1 never hears what the others of its group have sent and goes on waiting; they have left the operation.
TEST(WaitGraph, AMessageThatDidNotComeInsideACollective) {
  for (const bool names_peers : {true, false}) {
    FakeRun run(2, 1, 1);
    run.names_peers = names_peers;
    run.drop(1, 1);
    run.run();
    const WaitGraph graph = wait_graph(run.views());
    ASSERT_EQ(graph.cycles.size(), 1u);
    EXPECT_EQ(graph.cycles[0], (Ranks{0, 1}));
    const Wait* lost = graph.lost_in(graph.cycles[0], run.views());
    ASSERT_NE(lost, nullptr);
    EXPECT_EQ(lost->reason, WaitReason::lost);
    EXPECT_EQ(lost->from, 1);
    EXPECT_EQ(lost->to, 0);
    EXPECT_EQ(operation_name(*lost), "tp all_reduce 41");
  }
}

TEST(WaitGraph, ACycleWithoutAHintNamesNobody) {
  FakeRun run(2, 1, 2);
  const auto enter = [&](int rank, const char* group) {
    GroupView& g = run.group(rank, group);
    g.open = true;
    ++g.entered;
  };
  enter(0, "tp");
  enter(1, "dp");
  enter(3, "tp");
  enter(2, "dp");
  const WaitGraph graph = wait_graph(run.views());
  ASSERT_EQ(graph.cycles.size(), 1u);
  EXPECT_EQ(graph.cycles[0], (Ranks{0, 1, 2, 3}));
  EXPECT_TRUE(graph.culprits.empty());
  EXPECT_EQ(graph.lost_in(graph.cycles[0], run.views()), nullptr);
}

TEST(WaitGraph, RanksOfAHostThatIsGoneAreKnownByTheMesh) {
  FakeRun run(2, 2, 2);
  for (int r = 4; r < 8; ++r) run.hold(r, 3);
  run.run();
  RankViews views = run.views();
  for (size_t r = 4; r < 8; ++r) views[r].reset();
  const WaitGraph graph = wait_graph(views);
  EXPECT_EQ(graph.culprits, (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(graph.waiting_for(4), Ranks{0});
}

TEST(WaitGraph, ABroadcastWaitsForItsParentAlone) {
  FakeRun run(4, 1, 1);
  GroupView& g = run.group(3, "tp");
  g.open = true;
  g.entered = 41;
  g.kind = static_cast<uint8_t>(CommKind::broadcast);
  g.peer = 2;
  const WaitGraph graph = wait_graph(run.views());
  EXPECT_EQ(graph.culprits, Ranks{2});
  EXPECT_EQ(graph.waits[0].reason, WaitReason::late);
}

TEST(WaitGraph, OnAStreamWhoReadsBackWaitsForWhoHasPutLessThere) {
  FakeRun run(1, 1, 3);
  for (int r = 0; r < 3; ++r) {
    GroupView& g = run.group(r, "dp");
    g.on_stream = true;
    g.entered = g.left = r == 2 ? 42 : 45;
    run.view(r).action = r == 2 ? FlightAction::backward : FlightAction::read_back;
  }
  const WaitGraph graph = wait_graph(run.views());
  EXPECT_EQ(graph.culprits, Ranks{2});
  EXPECT_EQ(graph.waiting_for(2), (Ranks{0, 1}));
  EXPECT_EQ(operation_name(graph.waits[0]), "dp operation 43");
}

TEST(WaitGraph, AThousandRanksAreQuicklyDone) {
  FakeRun run(1, 1, 1000);
  for (int r = 1; r < 1000; ++r) {
    GroupView& g = run.group(r, "dp");
    g.open = true;
    ++g.entered;
  }
  const WaitGraph graph = wait_graph(run.views());
  EXPECT_EQ(graph.culprits, Ranks{0});
  EXPECT_EQ(graph.waits.size(), 999u);
}

}  // namespace
}  // namespace hlat
