// What a launcher that is started again knows of those before it.
#include "supervise/launch_history.h"

#include <gtest/gtest.h>

namespace hlat {
namespace {

struct Past {
  std::vector<RunEvent> events;

  RunEvent& by_launcher(const char* kind, int64_t attempt = 0, int64_t step = 0) {
    events.push_back({.kind = kind, .by = "launch", .step = step, .rank = -1, .attempt = attempt});
    return events.back();
  }
  void by_rank(const char* kind, const char* reason = "") { events.push_back({.kind = kind, .reason = reason}); }
  void fails(int64_t attempt, int64_t step, const char* cause = "hang") {
    by_launcher("attempt", attempt);
    by_rank("start", attempt == 1 ? "started" : "started again");
    by_rank("ready");
    RunEvent& e = by_launcher("fault", attempt, step);
    e.cause = cause, e.rank = 2, e.host = "b", e.reason = "no progress", e.saved = step - 1;
    by_launcher("teardown", attempt);
    by_launcher("restart", attempt);
  }
};

TEST(LaunchHistory, ATakeoverForgetsNothing) {
  Past p;
  p.by_launcher("launch");
  p.fails(1, 5);
  p.fails(2, 5, "dead_host");
  p.by_launcher("evict", 2).host = "b";
  p.by_launcher("skip", 2, 7);
  p.by_launcher("launch").reason = "started again";
  const LaunchHistory h = launch_history(p.events, false);
  ASSERT_EQ(h.failures.size(), 2u);
  EXPECT_EQ(h.failures[0].kind, FailureCause::hang);
  EXPECT_EQ(h.failures[1].kind, FailureCause::dead_host);
  EXPECT_EQ(h.failures[1].step, 5);
  EXPECT_EQ(h.failures[1].rank, 2);
  EXPECT_EQ(h.failures[1].host, "b");
  EXPECT_EQ(h.failures[1].saved, 4);
  EXPECT_EQ(h.evicted, std::set<std::string>{"b"});
  EXPECT_EQ(h.skips, std::vector<int64_t>{7});
  EXPECT_EQ(h.attempts, 2);
  EXPECT_EQ(h.restarts, 2);
  EXPECT_TRUE(h.started);
  EXPECT_TRUE(h.pending) << "no rank was ready since";
}

TEST(LaunchHistory, ARangeOfSkipsAndTheAlarmBehindItComeBack) {
  Past p;
  p.by_launcher("launch");
  p.fails(1, 300, "alarm");
  for (RunEvent& e : p.events)
    if (e.kind == "fault") e.until = 340;
  p.by_launcher("skip", 1, 7);  // of a version that knew no ranges
  p.by_launcher("skip", 1, 300).until = 303;
  const LaunchHistory h = launch_history(p.events, false);
  ASSERT_EQ(h.failures.size(), 1u);
  EXPECT_EQ(h.failures[0].step, 300);
  EXPECT_EQ(h.failures[0].until, 340);
  EXPECT_EQ(h.skips, (std::vector<int64_t>{7, 300, 301, 302, 303}));
  EXPECT_TRUE(h.skips_before.empty());
  p.fails(2, 310);
  EXPECT_EQ(launch_history(p.events, false).skips_before, h.skips) << "what the next answer starts from";
}

TEST(LaunchHistory, AnAnswerThatRanksHaveTakenUpIsNotPending) {
  Past p;
  p.by_launcher("launch");
  p.fails(1, 5);
  p.by_launcher("attempt", 2);
  p.by_rank("start", "started again");
  EXPECT_TRUE(launch_history(p.events, false).pending);
  p.by_rank("ready");
  EXPECT_FALSE(launch_history(p.events, false).pending);
}

TEST(LaunchHistory, AStopOfThePolicyKeepsTheBudgetAndAPersonsSignalDoesNot) {
  Past p;
  p.by_launcher("launch");
  p.fails(1, 5);
  p.by_launcher("skip", 1, 3);
  p.by_launcher("evict", 1).host = "b";
  p.by_launcher("stop", 1);
  p.by_launcher("launch");
  EXPECT_EQ(launch_history(p.events, false).failures.size(), 1u);
  p.by_launcher("stop", 1).cause = kStopBySignal;
  const LaunchHistory h = launch_history(p.events, false);
  EXPECT_TRUE(h.failures.empty() && h.evicted.empty());
  EXPECT_EQ(h.restarts, 0);
  EXPECT_EQ(h.skips, std::vector<int64_t>{3}) << "the batch is as bad as before";
  EXPECT_EQ(h.attempts, 1) << "fault_1.txt stays";
  EXPECT_TRUE(h.started);
}

TEST(LaunchHistory, AFinishedRunAndOneThatStartsAnewHaveNoPast) {
  Past p;
  p.by_launcher("launch");
  p.fails(1, 5);
  p.by_launcher("skip", 1, 3);
  const LaunchHistory fresh = launch_history(p.events, true);
  EXPECT_TRUE(fresh.failures.empty() && fresh.skips.empty() && !fresh.started);
  EXPECT_EQ(fresh.attempts, 1);
  Past finished = p;
  finished.by_launcher("finished", 1);
  EXPECT_TRUE(launch_history(finished.events, false).skips.empty());
  Past anew = p;
  anew.by_launcher("launch").cause = kFreshLaunch;
  anew.fails(2, 9);
  const LaunchHistory h = launch_history(anew.events, false);
  ASSERT_EQ(h.failures.size(), 1u);
  EXPECT_EQ(h.failures[0].step, 9);
  Past by_hand = p;
  by_hand.by_launcher("stop", 1);
  by_hand.by_rank("start", "started");  // hlat train --fresh, without a launcher
  EXPECT_TRUE(launch_history(by_hand.events, false).failures.empty());
}

TEST(LaunchHistory, StepsAreMerged) { EXPECT_EQ(merged_steps({9, 3}, {3, 5}), (std::vector<int64_t>{3, 5, 9})); }

}  // namespace
}  // namespace hlat
