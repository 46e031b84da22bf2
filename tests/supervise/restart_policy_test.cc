// What follows a failure: every rule alone, then histories that mix them.
#include "supervise/restart_policy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/error.h"
#include "supervise/launch_history.h"
#include "train/loss_policy.h"

namespace hlat {
namespace {

using Kind = FailureCause;

constexpr Kind kAll[] = {Kind::finished,  Kind::bad_input,  Kind::bug,        Kind::preempted, Kind::dead_rank,  Kind::out_of_memory,
                         Kind::dead_host, Kind::hang,       Kind::start_hang, Kind::health,    Kind::non_finite, Kind::spike,
                         Kind::error,     Kind::fault_exit, Kind::straggler,  Kind::alarm};
constexpr Kind kRestartable[] = {Kind::preempted, Kind::dead_rank,  Kind::out_of_memory, Kind::dead_host,  Kind::hang,     Kind::start_hang,
                                 Kind::health,    Kind::non_finite, Kind::error,         Kind::fault_exit, Kind::straggler};

StepRange one_step(int64_t step) { return {step, step}; }

struct Policy {
  LaunchConfig launch;
  LossConfig loss;
  std::vector<Failure> history;
  std::vector<int64_t> skips;

  Decision fail(Failure failure) {
    history.push_back(std::move(failure));
    Decision d = decide(history, skips, launch, loss);
    if (d.skip) skips = merged_steps(skips, d.skip->steps());
    return d;
  }
  Decision fail(Kind kind, int64_t step) { return fail(Failure{.kind = kind, .step = step}); }
};

TEST(RestartPolicy, BadInputBugsAndTheEndAreNeverRestarted) {
  for (const auto& [kind, code] : {std::pair{Kind::finished, 0}, {Kind::bad_input, 2}, {Kind::bug, 3}}) {
    Policy p;
    p.fail(Kind::hang, 3);  // whatever came before
    const Decision d = p.fail(kind, 7);
    EXPECT_FALSE(d.restart) << name_of(kind);
    EXPECT_EQ(d.exit_code, code);
    EXPECT_FALSE(d.words.empty());
  }
}

TEST(RestartPolicy, ASignalWhileNothingTrainsLosesNothing) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    EXPECT_EQ(exit_code_of_stop(signal, 0, false), 6) << "no rank ran";
    EXPECT_EQ(exit_code_of_stop(signal, 128 + signal, false), 6) << "ranks were starting";
    EXPECT_EQ(exit_code_of_stop(signal, 6, true), 6);
    EXPECT_EQ(exit_code_of_stop(signal, 128 + signal, true), 128 + signal) << "they did not save";
    EXPECT_EQ(exit_code_of_stop(signal, 0, true), 128 + signal);
  }
  EXPECT_EQ(exit_code_of_stop(SIGINT, 0, false), 130) << "a person is there";
}

TEST(RestartPolicy, EverythingElseIsRestartedFromTheNewestCheckpointAtOnce) {
  for (const Kind kind : kRestartable) {
    Policy p;
    const Decision d = p.fail(kind, 7);
    EXPECT_TRUE(d.restart) << name_of(kind);
    EXPECT_EQ(d.pause_s, 0) << name_of(kind);
    EXPECT_EQ(d.from, kind == Kind::health ? RestartFrom::verified_before : RestartFrom::newest) << name_of(kind);
    EXPECT_FALSE(d.skip) << name_of(kind);
  }
}

TEST(RestartPolicy, AHealthFailureGoesBackToWhatWasVerifiedBefore) {
  Policy p;
  EXPECT_EQ(p.fail(Kind::health, 41).before, 41);
  EXPECT_EQ(p.fail(Kind::health, 41).before, 41);
  const Decision d = p.fail(Kind::health, 41);
  EXPECT_FALSE(d.restart);
  EXPECT_EQ(d.exit_code, 5);
}

TEST(RestartPolicy, WhoeverAskedTheLauncherToEndIsHeard) {
  for (const Kind kind : kAll) {
    Policy p;
    EXPECT_FALSE(p.fail({.kind = kind, .step = 5, .asked = true}).restart) << name_of(kind);
  }
  Policy p;
  EXPECT_EQ(p.fail({.kind = Kind::preempted, .step = 5, .exit_code = 6, .asked = true}).exit_code, 6);
  EXPECT_EQ(p.fail({.kind = Kind::dead_rank, .step = 5, .exit_code = 143, .asked = true}).exit_code, 143) << "the grace was over";
}

TEST(RestartPolicy, ARankThatWasKilledFromOutsideIsRestarted) {
  for (const int code : {6, 143, 137}) {
    Policy p;
    EXPECT_TRUE(p.fail({.kind = failure_of_exit(code), .step = 5, .rank = 1, .exit_code = code}).restart) << code;
  }
}

TEST(RestartPolicy, TheBudgetCountsAllRestarts) {
  Policy p;
  p.launch.restarts = 3;
  for (int64_t step : {10, 20, 30}) EXPECT_TRUE(p.fail(Kind::hang, step).restart);
  const Decision d = p.fail({.kind = Kind::dead_rank, .step = 40, .rank = 2, .host = "node7", .exit_code = 139, .words = "SIGSEGV"});
  EXPECT_FALSE(d.restart);
  EXPECT_EQ(d.exit_code, 139);
  EXPECT_NE(d.words.find("launch.restarts"), std::string::npos);
  EXPECT_NE(d.words.find("rank 2 on node7"), std::string::npos) << d.words;
  Policy none;
  none.launch.restarts = 0;
  EXPECT_FALSE(none.fail(Kind::hang, 10).restart);
}

TEST(RestartPolicy, PausesDoubleUntilAStepIsGained) {
  Policy p;
  p.launch.same_failure = 100;
  p.launch.backoff_s = 10;
  std::vector<double> pauses;
  for (int i = 0; i < 7; ++i) pauses.push_back(p.fail(Kind::hang, 50).pause_s);
  EXPECT_EQ(pauses, (std::vector<double>{0, 1, 2, 4, 8, 10, 10}));
  EXPECT_EQ(p.fail(Kind::dead_rank, 49).pause_s, 10) << "not beyond the best";
  EXPECT_EQ(p.fail(Kind::dead_rank, 51).pause_s, 0) << "one step gained";
  EXPECT_EQ(p.fail(Kind::start_hang, 0).pause_s, 1);
  EXPECT_EQ(p.fail(Kind::hang, 51).pause_s, 2);
  EXPECT_EQ(p.fail(Kind::hang, 60).pause_s, 0);
}

TEST(RestartPolicy, ManyFailuresWithoutProgressKeepTheLongestPause) {
  Policy p;
  p.launch.same_failure = p.launch.restarts = 1'000'000;
  Decision d;
  for (int i = 0; i < 300; ++i) d = p.fail(Kind::fault_exit, 1);
  EXPECT_EQ(d.pause_s, static_cast<double>(p.launch.backoff_s));
  p.launch.backoff_s = 0;
  EXPECT_EQ(p.fail(Kind::fault_exit, 1).pause_s, 0);
}

TEST(RestartPolicy, TheSameFailureAtOneStepStopsWithTheEvidence) {
  for (const Kind kind : kRestartable) {
    if (kind == Kind::non_finite || kind == Kind::out_of_memory) continue;  // have answers of their own
    Policy p;
    const auto fail = [&](const char* words) { return p.fail({.kind = kind, .step = 12, .rank = 3, .host = "h", .words = words}); };
    EXPECT_TRUE(fail("first").restart) << name_of(kind);
    EXPECT_TRUE(fail("second").restart) << name_of(kind) << ": words are not compared";
    const Decision d = fail("third");
    EXPECT_FALSE(d.restart) << name_of(kind);
    EXPECT_NE(d.exit_code, 0);
    for (const char* words : {"first", "second", "third", "step 12", "launch.same_failure"})
      EXPECT_NE(d.words.find(words), std::string::npos) << d.words;
  }
}

TEST(RestartPolicy, AnotherKindOrStepIsAnotherFailure) {
  Policy p;
  EXPECT_TRUE(p.fail(Kind::hang, 12).restart);
  EXPECT_TRUE(p.fail(Kind::hang, 12).restart);
  EXPECT_TRUE(p.fail(Kind::dead_rank, 12).restart);
  EXPECT_TRUE(p.fail(Kind::hang, 11).restart) << "step 12 was not passed by this";
  EXPECT_FALSE(p.fail(Kind::hang, 12).restart) << "the third time at step 12";
}

TEST(RestartPolicy, AStepThatWasPassedInBetweenStartsTheCountAnew) {
  Policy p;
  p.fail(Kind::start_hang, 0);
  p.fail(Kind::start_hang, 0);
  EXPECT_TRUE(p.fail(Kind::dead_rank, 400).restart);
  EXPECT_TRUE(p.fail(Kind::start_hang, 0).restart) << "the third of months, not of one start";
  EXPECT_TRUE(p.fail(Kind::start_hang, 0).restart);
  const Decision d = p.fail(Kind::start_hang, 0);
  EXPECT_FALSE(d.restart);
  EXPECT_EQ(d.exit_code, 4);
  EXPECT_NE(d.words.find("at the start"), std::string::npos);
}

TEST(RestartPolicy, HostsThatGoOneAfterTheOtherAreLeftOut) {
  Policy p;
  for (const char* host : {"a", "b", "c", "d"}) {
    const Decision d = p.fail({.kind = Kind::dead_host, .step = 9, .host = host});
    EXPECT_TRUE(d.restart) << host;
    EXPECT_EQ(d.evict, host);
  }
  EXPECT_TRUE(p.fail({.kind = Kind::dead_host, .step = 9, .host = "a"}).restart);
  EXPECT_FALSE(p.fail({.kind = Kind::dead_host, .step = 9, .host = "a"}).restart);
  EXPECT_EQ(Policy().fail({.kind = Kind::straggler, .step = 9, .host = "slow"}).evict, "slow");
  EXPECT_EQ(Policy().fail({.kind = Kind::hang, .step = 9, .host = "a"}).evict, "");
}

TEST(RestartPolicy, ALackOfMemoryThatComesAgainIsAStop) {
  Policy p;
  EXPECT_TRUE(p.fail(Kind::out_of_memory, 10).restart);
  EXPECT_TRUE(p.fail(Kind::out_of_memory, 2000).restart) << "steps were gained: a leak, and a restart gets on";
  EXPECT_TRUE(p.fail(Kind::hang, 1900).restart);
  const Decision d = p.fail(Kind::out_of_memory, 1950);
  EXPECT_FALSE(d.restart) << "another step, but none gained";
  EXPECT_EQ(d.exit_code, 137);
}

TEST(RestartPolicy, AValueThatIsNotFiniteIsTriedAgainThenSkippedThenAStop) {
  Policy p;
  const Decision first = p.fail(Kind::non_finite, 30);
  EXPECT_TRUE(first.restart);
  EXPECT_FALSE(first.skip);
  EXPECT_EQ(first.from, RestartFrom::newest);
  const Decision second = p.fail(Kind::non_finite, 30);
  EXPECT_TRUE(second.restart);
  EXPECT_EQ(second.skip, one_step(30));
  EXPECT_EQ(p.skips, std::vector<int64_t>{30});
  EXPECT_EQ(second.from, RestartFrom::before);
  EXPECT_EQ(second.before, 30);
  const Decision third = p.fail(Kind::non_finite, 30);
  EXPECT_FALSE(third.restart);
  EXPECT_EQ(third.exit_code, 5);
  EXPECT_NE(third.words.find("without its batch"), std::string::npos);
}

TEST(RestartPolicy, AnotherFailureAsksForNoOtherSkips) {
  Policy p;
  p.fail(Kind::non_finite, 30);
  p.fail(Kind::non_finite, 30);
  EXPECT_FALSE(p.fail(Kind::hang, 20).skip);
  p.fail(Kind::non_finite, 44);
  p.fail(Kind::non_finite, 44);
  EXPECT_EQ(p.skips, (std::vector<int64_t>{30, 44}));
}

TEST(RestartPolicy, AFaultInBetweenDoesNotHideTheRepetition) {
  Policy p;
  p.fail(Kind::non_finite, 30);
  p.fail(Kind::dead_rank, 28);
  EXPECT_EQ(p.fail(Kind::non_finite, 30).skip, one_step(30));
  Policy passed;
  passed.fail(Kind::non_finite, 30);
  passed.fail(Kind::dead_rank, 35);
  EXPECT_FALSE(passed.fail(Kind::non_finite, 30).skip) << "it was passed: not the batch";
}

TEST(RestartPolicy, NumbersFollowTheirPolicy) {
  struct Row {
    Kind kind;
    const char* policy;
    bool restarts, skips;  // the first time
  };
  for (const Row& row : {Row{Kind::non_finite, "stop", false, false},
                         {Kind::non_finite, "rollback", true, false},
                         {Kind::non_finite, "skip", true, false},
                         {Kind::spike, "stop", false, false},
                         {Kind::spike, "rollback", true, true},
                         {Kind::spike, "skip", true, true},
                         {Kind::spike, "continue", true, false}}) {
    Policy p;
    (row.kind == Kind::spike ? p.loss.on_spike : p.loss.on_nonfinite) = row.policy;
    const Decision d = p.fail(row.kind, 8);
    EXPECT_EQ(d.restart, row.restarts) << row.policy;
    EXPECT_EQ(d.skip.has_value(), row.skips) << row.policy;
    EXPECT_EQ(d.exit_code, d.restart ? 0 : 5) << row.policy;
  }
}

TEST(RestartPolicy, AnAlarmGoesBackBehindItsBeginningOnce) {
  Policy p;
  p.loss.on_alarm = "stop";
  const Decision stopped = p.fail(Kind::alarm, 300);
  EXPECT_FALSE(stopped.restart);
  EXPECT_EQ(stopped.exit_code, 5);
  EXPECT_NE(stopped.words.find("loss.on_alarm is stop"), std::string::npos) << stopped.words;
  Policy back;
  back.loss.on_alarm = "rollback";
  const Decision first = back.fail(Kind::alarm, 300);
  EXPECT_TRUE(first.restart);
  EXPECT_EQ(first.from, RestartFrom::before);
  EXPECT_EQ(first.before, 300);
  EXPECT_EQ(first.skip, one_step(300)) << "a version that did not tell when it was found";
  EXPECT_TRUE(back.fail(Kind::alarm, 900).restart) << "long after: another trouble";
  const Decision again = back.fail(Kind::alarm, 950);
  EXPECT_FALSE(again.restart);
  EXPECT_NE(again.words.find("came back"), std::string::npos) << again.words;
}

struct AlarmPolicy : Policy {
  explicit AlarmPolicy(int64_t budget) {
    loss.on_alarm = "rollback";
    loss.skips = budget;
  }
  Decision alarm(const char* rule, int64_t since, int64_t until) {
    return fail({.kind = Kind::alarm, .step = since, .until = until, .words = fmt::format("at step {} alarm {}: x", until, rule)});
  }
};

TEST(RestartPolicy, AnAlarmLeavesOutAllBatchesFromItsBeginningToTheStepThatFoundIt) {
  AlarmPolicy p(100);
  const Decision d = p.alarm("leak", 300, 315);
  EXPECT_TRUE(d.restart);
  EXPECT_EQ(d.before, 300);
  EXPECT_EQ(d.skip, (StepRange{300, 315}));
  EXPECT_EQ(p.skips, (StepRange{300, 315}.steps()));
  EXPECT_EQ(p.skips.size(), 16u);
  EXPECT_TRUE(d.words.ends_with("; the batches of steps 300 to 315 are skipped")) << d.words;
  EXPECT_FALSE(p.fail(Kind::hang, 310).skip) << "there is nothing more to leave out";
  const Decision again = p.alarm("leak", 400, 405);
  EXPECT_FALSE(again.restart);
  EXPECT_NE(again.words.find("came back"), std::string::npos) << again.words;
}

TEST(RestartPolicy, OfARangeBeyondTheBudgetTheFirstBatchesAreLeftOut) {
  AlarmPolicy p(10);
  const Decision d = p.alarm("leak", 300, 363);
  EXPECT_TRUE(d.restart);
  EXPECT_EQ(d.skip, (StepRange{300, 309}));
  EXPECT_TRUE(
      d.words.ends_with("; the batches of steps 300 to 309 are skipped, the batches of steps 310 to 363 are not, as loss.skips = 10 "
                        "allows no more"))
      << d.words;
  const Decision used_up = p.alarm("dead_layer", 400, 420);
  EXPECT_FALSE(used_up.restart);
  EXPECT_NE(used_up.words.find("10 batches were skipped in the last 1000 steps (loss.skips is 10)"), std::string::npos) << used_up.words;
  p.history.pop_back();
  EXPECT_EQ(p.alarm("dead_layer", 1310, 1420).skip, (StepRange{1310, 1319})) << "those are long past";
  AlarmPolicy nearly(5);
  EXPECT_NE(nearly.alarm("leak", 300, 305).words.find("are skipped, the batch of step 305 is not"), std::string::npos);
  EXPECT_FALSE(AlarmPolicy(0).alarm("leak", 300, 305).restart);
}

// A person who ends the launcher clears its failures, not the batches it has left out.
TEST(RestartPolicy, WhatWasLeftOutBeforeTheFailuresThatAreKnownCountsToo) {
  AlarmPolicy p(10);
  EXPECT_EQ(p.alarm("leak", 300, 309).skip, (StepRange{300, 309}));
  p.history.clear();
  const Decision used_up = p.alarm("dead_layer", 400, 405);
  EXPECT_FALSE(used_up.restart);
  EXPECT_NE(used_up.words.find("10 batches were skipped in the last 1000 steps"), std::string::npos) << used_up.words;
  p.history.clear();
  EXPECT_FALSE(p.alarm("leak", 300, 309).restart) << "not the same once more";
}

TEST(RestartPolicy, BatchesThatAreLeftOutAlreadyCostNoBudgetTwice) {
  AlarmPolicy p(8);
  p.loss.on_spike = "rollback";
  p.fail(Kind::spike, 302);
  p.alarm("leak", 300, 303);
  EXPECT_EQ(p.skips, (std::vector<int64_t>{300, 301, 302, 303}));
  const Decision other = p.alarm("dead_layer", 303, 320);
  EXPECT_EQ(other.skip, (StepRange{304, 307}));
  EXPECT_EQ(other.before, 303);
  EXPECT_EQ(p.skips, (StepRange{300, 307}.steps()));
  EXPECT_NE(other.words.find("of steps 308 to 320 are not"), std::string::npos) << other.words;
  const Decision none = p.alarm("drift", 301, 306);
  EXPECT_FALSE(none.restart);
  EXPECT_NE(none.words.find("fails without the batches of steps 301 to 306 too"), std::string::npos) << none.words;
}

// With the words that a trainer ends with, also after a launcher has put its own before them.
TEST(RestartPolicy, AnAlarmOfAnotherRuleIsAnotherTrouble) {
  LossConfig loss;
  loss.on_alarm = "rollback";
  LossState state;
  const LossPolicy policy(loss, state);
  const auto of = [&](AlarmRule rule, int64_t since, const std::string& evidence) {
    const LossVerdict verdict = policy.alarmed({.rule = rule, .since = since, .evidence = evidence}, 3, 1);
    return Failure{.kind = Kind::alarm, .step = since, .words = LossPolicy::failure(since + 40, verdict).what()};
  };
  Policy p;
  p.loss = loss;
  EXPECT_TRUE(p.fail(of(AlarmRule::grad_growth, 300, "the norm has grown")).restart);
  EXPECT_TRUE(p.fail(of(AlarmRule::dead_layer, 420, "a part is dead, which the alarm leak: would be")).restart);
  Failure again = of(AlarmRule::dead_layer, 450, "a part is dead");
  again.words = "ended: " + again.words;
  const Decision same = p.fail(again);
  EXPECT_FALSE(same.restart);
  EXPECT_NE(same.words.find("came back"), std::string::npos) << same.words;
  p.history.pop_back();
  EXPECT_FALSE(p.fail(Kind::alarm, 450).restart) << "a rule that is not known may be the same";
}

TEST(RestartPolicy, SameFailureOfOneSkipsAtOnce) {
  Policy p;
  p.launch.same_failure = 1;
  EXPECT_EQ(p.fail(Kind::non_finite, 8).skip, one_step(8));
  EXPECT_FALSE(p.fail(Kind::hang, 9).restart);
}

TEST(RestartPolicy, SkipsHaveABudgetInTheLastThousandSteps) {
  Policy p;
  p.loss.on_spike = "rollback";
  p.loss.skips = 2;
  EXPECT_TRUE(p.fail(Kind::spike, 100).skip);
  EXPECT_TRUE(p.fail(Kind::spike, 200).skip);
  EXPECT_TRUE(p.fail(Kind::spike, 1150).skip) << "that of step 100 is long past";
  const Decision d = p.fail(Kind::spike, 1160);
  EXPECT_FALSE(d.restart);
  EXPECT_NE(d.words.find("loss.skips"), std::string::npos);
}

TEST(RestartPolicy, CodesAndNames) {
  for (const Kind kind : kAll) EXPECT_EQ(failure_kind(name_of(kind)), kind);
  EXPECT_FALSE(failure_kind("flood"));
  EXPECT_EQ(failure_of_exit(0), Kind::finished);
  EXPECT_EQ(failure_of_exit(1), Kind::error);
  EXPECT_EQ(failure_of_exit(127), Kind::error);
  EXPECT_EQ(failure_of_exit(137), Kind::dead_rank);
  for (const Kind kind : kAll) {
    const int code = exit_code_of(Failure{.kind = kind});
    EXPECT_EQ(code == 0, kind == Kind::finished) << name_of(kind);
    EXPECT_EQ(exit_code_of(Failure{.kind = kind, .exit_code = 9}), kind == Kind::finished ? 0 : 9);
  }
  EXPECT_EQ(describe({.kind = Kind::start_hang, .host = "n1", .words = "MPI_Init"}), "start hang at the start, host n1: MPI_Init");
  EXPECT_THROW(decide({}, {}, {}, {}), CheckFailed);
}

}  // namespace
}  // namespace hlat
