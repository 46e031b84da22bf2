// Goodput from events with times that are chosen: every cause gets its seconds, and all of them add up to the wall time.
#include "record/goodput.h"

#include <gtest/gtest.h>

#include <numeric>

#include "record/metrics.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

constexpr double kT0 = 1.8e9;

// A run told in seconds since its first event.
struct Story {
  RunRecord record;

  RunEvent& at(double t, const char* kind, int64_t step = 0) {
    record.events.push_back({.time = kT0 + t, .kind = kind, .step = step});
    return record.events.back();
  }
  RunEvent& launcher(double t, const char* kind, int64_t step = 0) {
    RunEvent& e = at(t, kind, step);
    e.by = "launch";
    return e;
  }
  void attempt(double t, int64_t number, int64_t from = 0) { launcher(t, "attempt", from).attempt = number; }
  // The process began `seconds` before. reached, progressed: by the run before; negative: none.
  void start(double t, double seconds, bool anew, int64_t reached = -1, double progressed = -1) {
    RunEvent& e = at(t, "start");
    e.seconds = seconds;
    e.reason = anew ? "started" : "started again";
    if (reached >= 0) e.reached = reached;
    if (progressed >= 0) e.progressed_at = kT0 + progressed;
  }
  void ready(double t, int64_t behind, double load_s, int64_t repeated = 0, double repeated_s = 0) {
    RunEvent& e = at(t, "ready", behind);
    e.load_s = load_s, e.repeated = repeated, e.repeated_s = repeated_s;
  }
  void end(double t, int64_t step, int code) { at(t, "end", step).exit_code = code; }
  void fault(double t, const char* cause, int64_t step, double progressed) {
    RunEvent& e = launcher(t, "fault", step);
    e.cause = cause, e.progressed_at = kT0 + progressed, e.rank = 1;
  }
  void seconds(double t, const char* kind, double s) { launcher(t, kind).seconds = s; }
  void steps(int64_t first, int64_t last, double s) {
    for (int64_t step = first; step <= last; ++step) record.steps.push_back({step, s, 0});
  }
  RunAccount account(double recorded = -1) {
    if (recorded >= 0) record.recorded_at = kT0 + recorded;
    return hlat::account(record);
  }
};

void expect_sums_up(const RunAccount& run) {
  const Goodput& g = run.goodput;
  EXPECT_NEAR(std::accumulate(g.lost.begin(), g.lost.end(), g.useful_s), g.wall_s, 1e-5);
  for (const double s : g.lost) EXPECT_GE(s, 0);
  EXPECT_GE(g.useful_s, 0);
}

// Names the causes that have time, with their seconds.
std::string lost(const RunAccount& run) {
  std::string text;
  for (size_t i = 0; i < kLostCauses; ++i)
    if (run.goodput.lost[i] > 1e-4)
      text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", name_of(static_cast<Lost>(i)), run.goodput.lost[i]);
  return text;
}

TEST(Goodput, ARunThatFinishes) {
  Story s;
  s.start(3, 3, true);
  s.ready(5, 0, 1);
  s.steps(1, 10, 2);
  s.at(26, "save", 10);
  s.end(27, 10, 0);
  const RunAccount run = s.account(25.5);
  expect_sums_up(run);
  EXPECT_NEAR(run.goodput.wall_s, 27, 1e-5);
  EXPECT_NEAR(run.goodput.useful_s, 20, 1e-5);
  EXPECT_EQ(lost(run), "start 4, load 1, saves 0.5, between 1.5") << "half a second between steps, one after the save";
  EXPECT_EQ(run.goodput.restarts, 0);
  EXPECT_EQ(run.goodput.kept, 10);
  EXPECT_EQ(run.goodput.step_s, 2);
  EXPECT_FALSE(run.launched);
}

TEST(Goodput, AKilledRunThatIsStartedAgainByHand) {
  Story s;
  s.start(1, 1, true);
  s.ready(2, 0, 0.5);
  // Steps of a second up to 7, saved at 5; killed at some time in the eighth.
  s.start(101, 1, false, 7, 9);
  s.ready(103, 5, 1, 2, 2);
  s.steps(1, 10, 1);
  s.end(108, 10, 0);
  const RunAccount run = s.account(108);
  expect_sums_up(run);
  EXPECT_EQ(lost(run), "start 3.5, load 1.5, repeated 2, down 91");
  EXPECT_NEAR(run.goodput.useful_s, 10, 1e-5);
  EXPECT_EQ(run.goodput.restarts, 1);
  EXPECT_EQ(run.goodput.repeated, 2);
  EXPECT_EQ(run.goodput.kept, 10);
  ASSERT_EQ(run.attempts.size(), 2u);
  EXPECT_EQ(run.attempts[0].reached, 7);
  EXPECT_EQ(run.attempts[0].kept, 5);
  EXPECT_EQ(run.attempts[1].kept, 5);
}

// launch, a hang that is found, teardown, check, pause, a wait for a host, and the end.
Story faulty() {
  Story s;
  s.launcher(0, "launch");
  s.attempt(2, 1);
  s.start(4, 1, true);
  s.ready(5, 0, 1);
  s.fault(30, "hang", 8, 20.5);  // the last record is of 20, the seventh step
  s.launcher(34, "teardown").seconds = 4;
  s.launcher(34, "restart", 5).pause_s = 3;
  s.seconds(41, "wait", 3);
  s.seconds(46, "check", 5);
  s.attempt(47, 2, 5);
  s.start(49, 1, false, 7, 20);
  s.ready(52, 5, 2, 2, 4);
  s.end(63, 10, 0);
  s.launcher(64, "finished", 10);
  s.steps(1, 10, 2);
  return s;
}

TEST(Goodput, EveryCauseOfARunUnderTheLauncher) {
  Story s = faulty();
  const RunAccount run = s.account(62.5);
  expect_sums_up(run);
  EXPECT_NEAR(run.goodput.wall_s, 64, 1e-5);
  EXPECT_NEAR(run.goodput.useful_s, 20, 1e-5);
  EXPECT_EQ(lost(run), "detection 9.5, teardown 5, start 7, load 3, repeated 4.5, between 2, check 5, pause 3, wait 3, unknown 2");
  ASSERT_EQ(run.attempts.size(), 2u);
  EXPECT_TRUE(run.launched);
  EXPECT_EQ(run.attempts[0].cause, "hang");
  EXPECT_EQ(run.attempts[0].rank, 1);
  EXPECT_EQ(run.attempts[0].reached, 7);
  EXPECT_EQ(run.attempts[1].exit_code, 0);
}

TEST(Goodput, LinesThatWereHeldAreTakenAtTheirTime) {
  Story s = faulty();
  const RunAccount in_order = s.account(62.5);
  std::rotate(s.record.events.begin() + 4, s.record.events.begin() + 7, s.record.events.end());  // from the fault to the restart
  EXPECT_EQ(lost(s.account(62.5)), lost(in_order));
}

TEST(Goodput, SlowStepsFirstStepsAndSaves) {
  Story s;
  s.start(0, 0, true);
  s.ready(0, 0, 0);
  s.steps(1, 20, 1);
  s.record.steps[0].seconds = 3;  // starts libraries
  s.record.steps[9].seconds = 6;  // just slow
  s.record.steps[14].seconds = 2.5;
  s.record.steps[15].save_wait_s = 1.5;  // that step 15 waited
  s.end(30, 20, 0);
  const RunAccount run = s.account(28.5);
  expect_sums_up(run);
  EXPECT_EQ(lost(run), "start 2, saves 1.5, slow 5, between 1.5");
  EXPECT_NEAR(run.goodput.useful_s, 20, 1e-5);
}

TEST(Goodput, AStartThatHangs) {
  Story s;
  s.launcher(0, "launch");
  s.attempt(1, 1);
  s.fault(121, "start_hang", 0, 3);
  s.launcher(122, "teardown");
  s.launcher(122, "stop").exit_code = 4;
  const RunAccount run = s.account();
  expect_sums_up(run);
  EXPECT_EQ(lost(run), "detection 118, teardown 1, start 3");
  EXPECT_EQ(run.goodput.ratio(), 0);
}

TEST(Goodput, StepsThatAnUnreadyAttemptCutOffAreEstimated) {
  Story s;
  s.start(0, 0, true);
  s.ready(0, 0, 0);
  s.start(10, 0, false, 10, 10);  // cuts back to step 5, and dies before it is ready
  s.start(11, 0, false, 5, 10);
  s.ready(12, 5, 1);
  s.steps(1, 10, 1);
  s.end(17, 10, 0);
  const RunAccount run = s.account(17);
  expect_sums_up(run);
  EXPECT_EQ(run.goodput.repeated, 5);
  EXPECT_EQ(run.goodput.kept, 10);
  EXPECT_NEAR(run.goodput.of(Lost::repeated), 5, 1e-5);
  EXPECT_NEAR(run.goodput.useful_s, 10, 1e-5);
}

TEST(Goodput, WithoutMetricsStepsAreWhatIsBetweenReadyAndTheEnd) {
  Story s;
  s.start(1, 1, true);
  s.ready(2, 0, 0);
  s.end(12, 5, 0);
  const RunAccount run = s.account();
  expect_sums_up(run);
  EXPECT_EQ(lost(run), "start 2");
  EXPECT_NEAR(run.goodput.useful_s, 10, 1e-5);
}

TEST(Goodput, AFinishedRunThatGoesOnLaterLostNothingInBetween) {
  Story s;
  s.start(0, 0, true);
  s.ready(0, 0, 0);
  s.end(10, 10, 0);
  s.start(5000, 0, false, 10, 10);
  s.ready(5000, 10, 0);
  s.end(5010, 20, 0);
  s.steps(1, 20, 1);
  const RunAccount run = s.account(5010);
  expect_sums_up(run);
  EXPECT_NEAR(run.goodput.wall_s, 20, 1e-5);
  EXPECT_NEAR(run.goodput.ratio(), 1, 1e-6);
}

TEST(Goodput, APreemptedRunWasDownUntilItsNextStart) {
  Story s;
  s.start(0, 0, true);
  s.ready(0, 0, 0);
  s.at(5.5, "save", 5);
  s.end(6, 5, 6);
  s.start(20, 1, false, 5, 5);
  s.ready(21, 5, 0);
  s.end(26, 10, 0);
  s.steps(1, 10, 1);
  const RunAccount run = s.account(26);
  expect_sums_up(run);
  EXPECT_EQ(lost(run), "start 2, saves 0.5, between 0.5, down 13");
  EXPECT_EQ(run.goodput.repeated, 0);
}

TEST(Goodput, ARunThatStartsAnewIsAnotherRun) {
  Story s;
  s.start(0, 0, true);
  s.ready(0, 0, 0);
  s.end(100, 50, 4);
  s.start(1000, 0, true, 50, 100);
  s.ready(1000, 0, 0, 50, 100);
  s.steps(1, 10, 1);
  s.end(1010, 10, 0);
  const RunAccount run = s.account(1010);
  expect_sums_up(run);
  EXPECT_NEAR(run.goodput.wall_s, 10, 1e-5);
  EXPECT_EQ(run.goodput.restarts, 0);
  EXPECT_EQ(run.goodput.repeated, 0);
}

TEST(Goodput, ARestartWithoutACheckpointUnderOneLauncherRepeatsAll) {
  Story s;
  s.launcher(0, "launch");
  s.attempt(0, 1);
  s.start(0, 0, true);
  s.ready(0, 0, 0);
  s.fault(5, "dead_rank", 6, 5);
  s.launcher(5, "teardown");
  s.attempt(5, 2);
  s.start(6, 0, true, 5, 5);
  s.ready(6, 0, 0, 5, 5);
  s.end(16, 10, 0);
  s.steps(1, 10, 1);
  const RunAccount run = s.account(16);
  expect_sums_up(run);
  EXPECT_EQ(lost(run), "start 1, repeated 5");
  EXPECT_EQ(run.goodput.restarts, 1);
  EXPECT_EQ(run.attempts[0].kept, 0);
}

TEST(Goodput, ALauncherThatWasKilledAndTakesOver) {
  Story s;
  s.launcher(0, "launch");
  s.attempt(0, 1);
  s.start(0, 0, true);
  s.ready(0, 0, 0);
  s.launcher(20, "launch");  // the ranks were gone after the tenth second
  s.attempt(21, 2, 10);
  s.start(22, 0, false, 10, 10);
  s.ready(22, 10, 0);
  s.end(32, 20, 0);
  s.steps(1, 20, 1);
  const RunAccount run = s.account(32);
  expect_sums_up(run);
  EXPECT_EQ(lost(run), "start 2, down 10");
}

TEST(Goodput, AFreshRunAfterAKilledLauncherIsAnotherRun) {
  Story s;
  s.launcher(0, "launch");
  s.attempt(0, 1);
  s.start(0, 0, true);
  s.ready(0, 0, 0);  // killed: no word of an end
  s.launcher(1000, "launch").cause = kFreshLaunch;
  s.attempt(1000, 2);
  s.start(1000, 0, true, 50, 100);
  s.ready(1000, 0, 0, 50, 100);
  s.end(1010, 10, 0);
  s.steps(1, 10, 1);
  const RunAccount run = s.account(1010);
  expect_sums_up(run);
  EXPECT_NEAR(run.goodput.wall_s, 10, 1e-5);
  EXPECT_EQ(run.goodput.restarts, 0);
}

TEST(Goodput, ARunThatGoesOnCountsUntilNow) {
  Story s = faulty();
  s.record.events.resize(12);  // ready the second time
  s.record.runs = true;
  s.record.until = kT0 + 58;
  s.record.steps.resize(8);
  const RunAccount run = s.account(58);
  expect_sums_up(run);
  EXPECT_NEAR(run.until, kT0 + 58, 1e-5);
  EXPECT_NEAR(run.goodput.useful_s, 16, 1e-5);
  EXPECT_EQ(run.attempts.back().end, 0);
  EXPECT_EQ(run.attempts.back().reached, 8);
  s.record.events.resize(7);  // in the pause after the first
  s.record.until = kT0 + 36;
  EXPECT_NEAR(s.account(20).goodput.of(Lost::pause), 2, 1e-5);
}

TEST(Goodput, ClocksThatJumpBackLoseNothing) {
  Story s;
  s.start(10, 20, true);
  s.ready(5, 0, 30);
  s.fault(2, "hang", 3, 400);
  s.end(1, 3, 4);
  s.steps(1, 3, 1000);
  expect_sums_up(s.account(3));
  EXPECT_EQ(account({}).goodput.wall_s, 0);
}

TEST(Goodput, LiveIsWhatTheAccountSaysLater) {
  Story s = faulty();
  s.record.events.resize(12);
  s.record.runs = true;
  s.record.until = kT0 + 52;
  s.record.steps.resize(5);
  LiveGoodput live(s.account(52), kT0 + 52);
  double now = 0;
  for (int step = 6; step <= 10; ++step) now = live.step(2, 0, kT0 + 52 + 2 * (step - 5));
  EXPECT_NEAR(now, 20.0 / 62, 1e-6);
  EXPECT_LT(live.step(20, 0, kT0 + 82), 22.1 / 82) << "a slow step counts as a usual one";
  LiveGoodput skipping({}, kT0);
  skipping.step(2, 0, kT0 + 2);
  for (int i = 0; i < 64; ++i) skipping.step(1e-3, 0, kT0 + 2, false);
  EXPECT_NEAR(skipping.step(2, 0, kT0 + 4.064), 1, 1e-6) << "steps that were left out make no other one slow";
}

TEST(Goodput, Words) {
  Goodput g{.wall_s = 1000, .useful_s = 900, .restarts = 1};
  g.of(Lost::start) = 20, g.of(Lost::down) = 79.9, g.of(Lost::slow) = 0.1;
  EXPECT_EQ(goodput_words(g), "goodput 90.0% of 16m 40s, 1 restart");
  EXPECT_EQ(lost_words(g), "not running 1m 20s, starting 20s");
  EXPECT_EQ(lost_words({}), "nothing");
}

TEST(StepTimes, StepsThatWereLeftOutMakeNoOtherOneSlow) {
  std::vector<RecordedStep> steps;
  for (int64_t i = 1; i <= 10; ++i) steps.push_back({.step = i, .seconds = 2});
  for (int64_t i = 11; i <= 40; ++i) steps.push_back({.step = i, .seconds = 0.001, .computed = false});
  const StepSplit split = split_steps(steps, {});
  EXPECT_EQ(split.median, 2);
  EXPECT_EQ(split.slow, 0);
  EXPECT_NEAR(split.seconds, 20.03, 1e-9);
}

TEST(StepTimes, ReadsWhatTheWriterWrites) {
  const test::TempDir dir;
  {
    MetricsWriter writer(dir.path("metrics.jsonl"));
    StepMetrics m{.step = 3, .tokens = 30, .step_s = 0.25};
    writer.write(m);
    m.step = 4, m.step_s = 1e-7, m.save_wait_s = 0.125;
    writer.write(m);
    writer.write(StepMetrics{.step = 5, .step_s = 0.001, .skipped = true, .computed = false});
    writer.write(TaskMetrics{.step = 4, .tokens = 40, .values = {{"x/acc", 0.5}}});
  }
  std::ofstream(dir.path("metrics.jsonl"), std::ios::app) << "{\"step\":5,\"step_s\":0.";
  const std::vector<RecordedStep> steps = read_step_times(dir.path("metrics.jsonl"));
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].step, 3);
  EXPECT_EQ(steps[0].seconds, 0.25);
  EXPECT_EQ(steps[1].seconds, 1e-7);
  EXPECT_EQ(steps[1].save_wait_s, 0.125);
  EXPECT_TRUE(steps[0].computed);
  EXPECT_FALSE(steps[2].computed);
  EXPECT_NEAR(written_at(dir.path("metrics.jsonl")), wall_time(), 60);
  EXPECT_EQ(written_at(dir.path("none")), 0);
  EXPECT_TRUE(read_step_times(dir.path("none")).empty());
}

}  // namespace
}  // namespace hlat
