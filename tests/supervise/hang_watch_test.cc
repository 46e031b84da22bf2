#include "supervise/hang_watch.h"

#include <gtest/gtest.h>

#include <random>

#include "supervise/fake_run.h"

namespace hlat {
namespace {

LaunchConfig limits(int64_t hang_s, int64_t start_hang_s) {
  LaunchConfig config;
  config.hang_s = hang_s;
  config.start_hang_s = start_hang_s;
  return config;
}

// Feeds a watch with views of ranks whose silence the test sets; time goes by in looks.
class Looks {
 public:
  Looks(FakeRun& run, const LaunchConfig& config = {}) : run_(run), watch_(config, run.size()), since_(static_cast<size_t>(run.size())) {}

  void progress(int rank) {
    ++run_.view(rank).progress;
    since_[static_cast<size_t>(rank)] = now_;
  }
  void all_progress() {
    for (int r = 0; r < run_.size(); ++r) progress(r);
  }
  void step_done(double seconds) {
    ++step_;
    for (int r = 0; r < run_.size(); ++r) {
      run_.view(r).step = step_ + 1;
      run_.view(r).steps = {{.step = step_, .seconds = seconds, .compute_s = seconds}};
    }
  }
  std::optional<Hang> look(double delay_s = 0) {
    RankViews views = run_.views();
    for (size_t r = 0; r < views.size(); ++r) views[r]->silent_s = now_ - since_[r];
    return watch_.look(views, now_, delay_s);
  }
  // Until a hang is found, at most so long; returns the seconds.
  std::optional<Hang> pass(double seconds) {
    for (const double end = now_ + seconds; now_ < end;) {
      now_ += 0.5;
      if (auto hang = look()) return hang;
    }
    return std::nullopt;
  }
  void jump(double seconds) { now_ += seconds; }
  double now() const { return now_; }
  HangWatch& watch() { return watch_; }

 private:
  FakeRun& run_;
  HangWatch watch_;
  std::vector<double> since_;
  double now_ = 100;
  int64_t step_ = 0;
};

void learn(Looks& looks, double step_s, int steps = 20) {
  for (int i = 0; i < steps; ++i) {
    looks.jump(step_s);
    looks.all_progress();
    looks.step_done(step_s);
    ASSERT_FALSE(looks.look());
  }
}

TEST(HangWatch, StepsThatWereLeftOutTellNoTime) {
  FakeRun run(1, 1, 1);
  Looks looks(run);
  learn(looks, 20, 10);
  const double known = looks.watch().limit_of(run.view(0));
  EXPECT_GT(known, 50);
  learn(looks, 0, 64);  // as the trainer tells them
  EXPECT_EQ(looks.watch().limit_of(run.view(0)), known) << "a step of 20 s is still none that hangs";
  FakeRun other(1, 1, 1);
  Looks only(other);
  learn(only, 0, 64);
  EXPECT_EQ(only.watch().limit_of(other.view(0)), static_cast<double>(LaunchConfig{}.start_hang_s)) << "no time is known yet";
}

TEST(HangWatch, FindsAStoppedRankWithinTenSecondsAndSaysWhereTheOthersWait) {
  FakeRun run(2, 2, 2);
  Looks looks(run);
  learn(looks, 0.1);
  run.hold(5, 6);
  run.view(5).process = 'T';
  run.run();
  const double stopped = looks.now();
  const auto hang = looks.pass(60);
  ASSERT_TRUE(hang);
  EXPECT_LE(looks.now() - stopped, 10);
  EXPECT_EQ(hang->rank, 5);
  EXPECT_EQ(hang->ranks, std::vector<int>{5});
  EXPECT_EQ(hang->host, "node2");
  EXPECT_EQ(hang->step, 21);
  EXPECT_EQ(hang->phase, FlightPhase::training);
  EXPECT_GT(hang->silent_s, hang->limit_s);
  EXPECT_NE(hang->cause.find("rank 5 (node2) is stopped"), std::string::npos) << hang->cause;
  EXPECT_NE(hang->waiting.find("wait"), std::string::npos) << hang->waiting;
  EXPECT_NE(hang->waiting.find("tp all_reduce"), std::string::npos) << hang->waiting;
}

TEST(HangWatch, LongStepsAreFoundWithinThreeOfThem) {
  FakeRun run(1, 1, 2);
  Looks looks(run);
  learn(looks, 20);
  run.hold(1, 0);
  run.run();
  const double stopped = looks.now();
  const auto hang = looks.pass(1000);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, 1);
  EXPECT_GT(looks.now() - stopped, 50);
  EXPECT_LE(looks.now() - stopped, 60);
}

TEST(HangWatch, AWaitForARankThatGetsOnIsNone) {
  FakeRun run(1, 1, 4);
  Looks looks(run);
  learn(looks, 0.1);
  run.hold(2, 0);
  run.run();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(looks.pass(5));
    looks.progress(2);
  }
  const auto hang = looks.pass(20);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, 2);
  EXPECT_NE(hang->waiting.find("3 ranks wait in dp all_reduce 41 (ranks 0, 1, 3)"), std::string::npos) << hang->waiting;
}

TEST(HangWatch, ALostMessageNamesSenderAndReceiver) {
  FakeRun run(2, 1, 1);
  Looks looks(run);
  learn(looks, 0.1);
  run.drop(1, 1);
  run.run();
  const auto hang = looks.pass(60);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, 0);
  EXPECT_NE(hang->cause.find("a message from rank 0 (node1) to rank 1 (node2) did not come"), std::string::npos) << hang->cause;
}

TEST(HangWatch, ACycleWithoutAHintNamesNoRank) {
  FakeRun run(2, 1, 2);
  Looks looks(run);
  learn(looks, 0.1);
  for (const auto& [rank, group] : std::vector<std::pair<int, const char*>>{{0, "tp"}, {1, "dp"}, {3, "tp"}, {2, "dp"}}) {
    run.group(rank, group).open = true;
    ++run.group(rank, group).entered;
  }
  const auto hang = looks.pass(60);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, -1);
  EXPECT_EQ(hang->ranks.size(), 4u);
  EXPECT_NE(hang->cause.find("wait for each other"), std::string::npos);
}

TEST(HangWatch, TheStartHasALimitOfItsOwnAndItsOwnWords) {
  FakeRun run(1, 1, 3);
  for (int r = 0; r < 3; ++r) {
    run.view(r).phase = FlightPhase::start;
    run.view(r).phase_words = r == 1 ? "reading the config" : "joining the other ranks (MPI_Init)";
  }
  Looks looks(run, limits(0, 30));
  ASSERT_FALSE(looks.pass(2));
  looks.progress(0);
  looks.progress(2);
  const auto hang = looks.pass(100);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, 1);
  EXPECT_EQ(hang->phase, FlightPhase::start);
  EXPECT_NEAR(looks.now(), 131, 1.1);
  EXPECT_NE(hang->cause.find("reading the config"), std::string::npos) << hang->cause;
}

TEST(HangWatch, FilesThatAreReadAreProgressOfAStartAndNotOfAStep) {
  for (const bool starts : {true, false}) {
    FakeRun run(1, 1, 2);
    Looks looks(run, limits(0, 30));
    learn(looks, 0.1);
    for (int r = 0; r < 2; ++r) run.view(r).phase = starts ? FlightPhase::start : FlightPhase::training;
    bool alarm = false;
    for (int i = 0; i < 20; ++i) {
      for (int r = 0; r < 2; ++r) run.view(r).io_bytes += 10 << 20;
      alarm = alarm || looks.pass(10);
    }
    EXPECT_EQ(alarm, !starts);
    for (int i = 0; i < 20; ++i) {
      for (int r = 0; r < 2; ++r) run.view(r).io_bytes += 1000;  // a lock is renewed
      alarm = alarm || looks.pass(10);
    }
    EXPECT_TRUE(alarm);
  }
}

TEST(HangWatch, AllInOnePhaseOfTheStartNamesNoneUnlessOneIsStopped) {
  for (const bool stopped : {false, true}) {
    FakeRun run(1, 1, 3);
    for (int r = 0; r < 3; ++r) {
      run.view(r).phase = FlightPhase::start;
      run.view(r).phase_words = "joining the other ranks (MPI_Init)";
    }
    if (stopped) run.view(2).process = 'T';
    Looks looks(run);
    const auto hang = looks.pass(200);
    ASSERT_TRUE(hang);
    EXPECT_EQ(hang->rank, stopped ? 2 : -1);
    EXPECT_NE(hang->cause.find("MPI_Init"), std::string::npos) << hang->cause;
  }
}

TEST(HangWatch, ARankThatNeverStartsIsNamed) {
  FakeRun run(1, 1, 3);
  HangWatch watch(limits(0, 30), 3);
  RankViews views = run.views();
  views[1].reset();
  std::optional<Hang> hang;
  for (double now = 5; now < 34; now += 0.5) {
    for (auto& v : views)
      if (v) ++v->progress;
    ASSERT_FALSE(watch.look(views, now));
  }
  hang = watch.look(views, 36);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, 1);
  EXPECT_NE(hang->cause.find("rank 1 has not started"), std::string::npos);
}

TEST(HangWatch, OneKeyOverridesAllLimitsAfterTheStart) {
  FakeRun run(1, 1, 2);
  HangWatch watch(limits(3, 120), 2);
  for (const FlightPhase phase : {FlightPhase::training, FlightPhase::evaluation}) {
    run.view(0).phase = phase;
    EXPECT_EQ(watch.limit_of(run.view(0)), 3);
  }
  run.view(0).phase = FlightPhase::start;
  EXPECT_EQ(watch.limit_of(run.view(0)), 120);
}

TEST(HangWatch, RanksThatAreGoneAreDeadAndNoHang) {
  FakeRun run(1, 1, 3);
  Looks looks(run);
  learn(looks, 0.1);
  run.hold(1, 0);
  run.view(1).process = 'X';
  run.run();
  EXPECT_FALSE(looks.pass(300));
  RankViews views = run.views();
  views[2].reset();
  EXPECT_EQ(looks.watch().dead(views), (std::vector<int>{1, 2}));
}

TEST(HangWatch, TimeInWhichTheObserverDidNotRunDoesNotCount) {
  FakeRun run(1, 1, 2);
  Looks looks(run);
  learn(looks, 0.1);
  run.hold(1, 0);
  run.run();
  looks.jump(60);  // the machine was suspended, and this process with it
  EXPECT_FALSE(looks.look(59.5));
  EXPECT_FALSE(looks.pass(7));
  const auto hang = looks.pass(5);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, 1);
}

// No more can have been missed than has gone by since the look before.
TEST(HangWatch, DelaysThatAreToldTooLongDoNotHideAHang) {
  FakeRun run(1, 1, 2);
  Looks looks(run);
  learn(looks, 0.1);
  run.hold(1, 0);
  run.run();
  looks.jump(0.5);
  EXPECT_FALSE(looks.look(300));
  EXPECT_TRUE(looks.pass(12));
}

// Every step is silent from its begin to its end, as those of a GPU are.
TEST(HangWatch, TenThousandUnevenStepsWithEvaluationsAndSavesRaiseNoAlarm) {
  for (const double shortest : {0.05, 1.0, 5.0}) {
    FakeRun run(1, 1, 2);
    Looks looks(run);
    std::mt19937 random(7);
    const auto between = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
    const auto last = [&](double seconds, FlightPhase phase, FlightAction action, const char* what) {
      for (int r = 0; r < 2; ++r) run.view(r).phase = phase, run.view(r).action = action;
      const auto hang = looks.pass(seconds);
      EXPECT_FALSE(hang) << what << ": " << (hang ? hang->cause : "");
      looks.all_progress();
      return !hang;
    };
    double validation = 0;
    for (int step = 1; step <= 10000; ++step) {
      const double seconds = shortest * between(1, 3);
      ASSERT_TRUE(last(seconds, FlightPhase::training, FlightAction::read_back, "step"));
      looks.step_done(seconds);
      if (step % 100 == 50) {
        ASSERT_TRUE(last(between(0, 60), FlightPhase::training, FlightAction::save_wait, "save"));
      }
      if (step % 100 == 0) {
        const double lasts = shortest * between(5, 9);
        ASSERT_TRUE(last(lasts, FlightPhase::validation, FlightAction::forward, "validation"));
        validation = std::max(validation, lasts);
        for (int r = 0; r < 2; ++r) run.view(r).longest = {0, 0, validation, 0, 0, 0};
      }
      if (step % 500 == 0) {
        ASSERT_TRUE(last(between(0, 110), FlightPhase::evaluation, FlightAction::none, "evaluation"));
      }
    }
    for (int r = 0; r < 2; ++r) run.view(r).phase = FlightPhase::training, run.view(r).action = FlightAction::backward;
    run.hold(1, 0);
    run.run();
    const double begin = looks.now();
    const auto hang = looks.pass(1000);
    ASSERT_TRUE(hang);
    EXPECT_EQ(hang->rank, 1);
    EXPECT_LE(looks.now() - begin, std::max(10.0, 3 * looks.watch().median_step_s()));
  }
}

}  // namespace
}  // namespace hlat
