// The expected goodput against formulas of first order, a simulation of single failures, and its own extremes.
#include "plan/fault_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"

namespace hlat::test {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

FaultAsk some_job() {
  return {.nodes = 64, .node_mtbf_h = 1000, .detection_s = 60, .restart_s = 600, .save_stall_s = 5, .commit_s = 30, .step_s = 3.6};
}

double sum_of(const FaultShares& s) { return s.useful + s.saves + s.repeated + s.detection + s.restart; }

// Failures one by one. Positions count work and stalls; save k is made at k * window and can be loaded when position k * window + commit
// is passed. The times between the first passages of those are independent, so they have a mean and an error.
struct PlayedFaults {
  std::vector<double> intervals;
  double wall = 0, detection = 0, restart = 0;
  double mean() const { return wall / static_cast<double>(intervals.size()); }
  double error_of_mean() const {
    double squares = 0;
    for (const double t : intervals) squares += (t - mean()) * (t - mean());
    const auto n = static_cast<double>(intervals.size());
    return std::sqrt(squares / (n - 1) / n);
  }
};

class FailingJob {
 public:
  FailingJob(const FaultAsk& ask, double interval, uint64_t seed)
      : ask_(ask), window_(interval + ask.save_stall_s), random_({.seed = seed, .purpose = Noise::sample}) {}

  PlayedFaults play(int intervals) {
    pass(ask_.commit_s);  // the first save is that of the start
    PlayedFaults result;
    detection_ = restart_ = 0;
    const double begin = clock_;
    for (int k = 1; k <= intervals; ++k) {
      const double from = clock_;
      pass(k * window_ + ask_.commit_s);
      result.intervals.push_back(clock_ - from);
    }
    result.wall = clock_ - begin;
    result.detection = detection_;
    result.restart = restart_;
    return result;
  }

 private:
  double until_failure() { return -std::log1p(-random_.next_unit()) / ask_.failures_per_s(); }
  // Works until `target` is passed.
  void pass(double target) {
    for (;;) {
      const double alive = until_failure();
      if (position_ + alive >= target) {
        clock_ += target - position_;
        position_ = target;
        return;
      }
      clock_ += alive;
      const double saves = std::floor((position_ + alive - ask_.commit_s) / window_);
      saved_ = std::max(saved_, saves);
      recover();
      position_ = saved_ * window_;
    }
  }
  void recover() {
    for (;;) {
      clock_ += ask_.detection_s;
      detection_ += ask_.detection_s;
      const double alive = std::min(until_failure(), ask_.restart_s);
      clock_ += alive;
      restart_ += alive;
      if (alive == ask_.restart_s) return;
    }
  }

  FaultAsk ask_;
  double window_;
  RandomStream random_;
  double clock_ = 0, position_ = 0, saved_ = 0, detection_ = 0, restart_ = 0;
};

void expect_as_played(const FaultAsk& ask, double interval, int intervals) {
  const FaultShares s = fault_shares(ask, interval);
  const PlayedFaults played = FailingJob(ask, interval, 7).play(intervals);
  const double error = played.error_of_mean();
  EXPECT_NEAR(interval / s.useful, played.mean(), 3.5 * error);
  EXPECT_LT(error, 0.01 * played.mean()) << "too few to tell anything";
  EXPECT_NEAR(s.detection, played.detection / played.wall, 0.02 * s.detection + 1e-3);
  EXPECT_NEAR(s.restart, played.restart / played.wall, 0.02 * s.restart + 1e-3);
}

TEST(FaultModel, AgreesWithFailuresPlayedOneByOne) {
  expect_as_played(some_job(), 600, 40000);  // the job fails every 16 hours
  FaultAsk often = some_job();
  often.node_mtbf_h = 60;  // and here every 56 minutes
  expect_as_played(often, 600, 40000);
  expect_as_played(often, 3600, 40000);
}

TEST(FaultModel, AgreesWithFailuresPlayedWhereTheyHitStartsAndCommits) {
  FaultAsk bad = some_job();
  bad.node_mtbf_h = 20;  // the job fails every 19 minutes, as long as these take
  bad.restart_s = 900;
  bad.commit_s = 500;
  bad.detection_s = 400;
  expect_as_played(bad, 700, 200000);
}

TEST(FaultModel, SharesAddUpToOne) {
  for (const double mtbf : {1e-3, 0.5, 20.0, 1000.0, 1e7, kInfinite})
    for (const double interval : {3.6, 600.0, 1e5, kInfinite}) {
      FaultAsk ask = some_job();
      ask.node_mtbf_h = mtbf;
      const FaultShares s = fault_shares(ask, interval);
      EXPECT_NEAR(sum_of(s), 1, 1e-12) << mtbf << " " << interval;
      EXPECT_GE(std::min({s.useful, s.saves, s.repeated, s.detection, s.restart}), 0) << mtbf << " " << interval;
    }
}

TEST(FaultModel, IsTheFormulaOfFirstOrderWhereFailuresAreRare) {
  FaultAsk ask = some_job();
  ask.commit_s = 0;
  double last = 1;
  for (const double mtbf : {1e4, 1e5, 1e6}) {
    ask.node_mtbf_h = mtbf;
    const double interval = best_interval_s(ask.failures_per_s(), ask.save_stall_s);
    const double lost = ask.save_stall_s / interval + ask.failures_per_s() * (interval / 2 + ask.detection_s + ask.restart_s);
    const double exact = 1 - fault_shares(ask, interval).useful;
    const double off = std::abs(lost / exact - 1);
    EXPECT_LT(off, last / 2) << mtbf;  // and ever closer
    last = off;
  }
  EXPECT_LT(last, 0.003);
}

TEST(FaultModel, BestIntervalIsYoungsAndDalysWhereSavesAreShort) {
  const double stall = 5, mtbf = 56 * 60;
  const double young = std::sqrt(2 * stall * mtbf), ratio = stall / (2 * mtbf);
  const double daly = young * (1 + std::sqrt(ratio) / 3 + ratio / 9) - stall;
  const double best = best_interval_s(1 / mtbf, stall);
  EXPECT_NEAR(best, young, 0.03 * young);
  EXPECT_NEAR(best, daly, 1e-4 * daly);
  EXPECT_GT(std::abs(best - young), 10 * std::abs(best - daly));
}

TEST(FaultModel, NoIntervalIsBetterThanTheBest) {
  for (const double mtbf : {3.0, 100.0, 1e5})
    for (const double stall : {0.01, 5.0, 300.0}) {
      FaultAsk ask = some_job();
      ask.node_mtbf_h = mtbf;
      ask.save_stall_s = stall;
      ask.commit_s = 0;
      const SaveEvery every = best_save_every(ask);
      ASSERT_TRUE(every);
      const double best = fault_shares(ask, interval_seconds(ask, every)).useful;
      for (int64_t n = 1; n < 4 * *every + 10; n += 1 + *every / 50)
        EXPECT_LE(fault_shares(ask, interval_seconds(ask, n)).useful, best) << n << " against " << *every;
      for (const int64_t n : {std::max<int64_t>(1, *every - 1), *every + 1})
        EXPECT_LE(fault_shares(ask, interval_seconds(ask, n)).useful, best);
      // Daly's formula, in steps, is one of those that are not better.
      const double ratio = stall * ask.failures_per_s() / 2, young = std::sqrt(2 * stall / ask.failures_per_s());
      const double daly = std::max(1.0, std::round((young * (1 + std::sqrt(ratio) / 3 + ratio / 9) - stall) / ask.step_s));
      EXPECT_LE(fault_shares(ask, daly * ask.step_s).useful, best);
    }
}

TEST(FaultModel, SavesThatCostNothingAreMadeAsOftenAsTheyCanBeCommitted) {
  FaultAsk ask = some_job();
  ask.save_stall_s = 0;
  EXPECT_EQ(best_save_every(ask), 9);  // 30 s of commit, 3.6 s of a step
  ask.commit_s = 0;
  EXPECT_EQ(best_save_every(ask), 1);
}

TEST(FaultModel, NothingFailsAndNothingIsSaved) {
  FaultAsk ask = some_job();
  ask.node_mtbf_h = kInfinite;
  EXPECT_EQ(best_save_every(ask), std::nullopt);
  EXPECT_EQ(fault_shares(ask, kInfinite).useful, 1);
  EXPECT_DOUBLE_EQ(fault_shares(ask, 95).useful, 0.95);
  EXPECT_EQ(fault_shares(ask, 95).failures_per_day, 0);
}

TEST(FaultModel, FailuresFasterThanStartsLeaveNothing) {
  FaultAsk ask = some_job();
  ask.node_mtbf_h = 64.0 * 60 / 3600;  // the job fails every minute and needs ten to start
  const FaultShares s = fault_shares(ask, interval_seconds(ask, best_save_every(ask)));
  EXPECT_GE(s.useful, 0);
  EXPECT_LT(s.useful, 1e-4);
  EXPECT_NEAR(s.detection, 0.5, 1e-9);
  EXPECT_NEAR(s.restart, 0.5, 1e-3);
  ask.node_mtbf_h = 1e-6;  // beyond what exp can hold
  EXPECT_EQ(fault_shares(ask, 3.6).useful, 0);
  EXPECT_GE(best_save_every(ask), 1);
}

TEST(FaultModel, WithoutSavesAJobThatFailsRepeatsAll) {
  const FaultShares s = fault_shares(some_job(), kInfinite);
  EXPECT_EQ(s.useful, 0);
  EXPECT_EQ(s.saves, 0);
  EXPECT_NEAR(s.repeated, s.up(), 1e-15);
}

TEST(FaultModel, MoreNodesLessGoodput) {
  FaultAsk ask = some_job();
  double before = 1;
  for (const int64_t nodes : {1, 4, 64, 256, 4096}) {
    ask.nodes = nodes;
    const double now = fault_shares(ask, interval_seconds(ask, best_save_every(ask))).useful;
    EXPECT_LT(now, before);
    before = now;
  }
}

TEST(FaultModel, ExplainsAShareOfTime) {
  const FaultAsk ask = some_job();
  const FaultShares s = fault_shares(ask, 600);
  for (const SeenShare& seen : {SeenShare{s.up()}, SeenShare{s.useful, 600}}) {
    EXPECT_NEAR(explaining_mtbf_h(ask, seen).value(), ask.node_mtbf_h, 1e-6);
    EXPECT_NEAR(explaining_detection_s(ask, seen).value(), ask.detection_s, 1e-6);
  }
  EXPECT_EQ(explaining_detection_s(ask, {0.999}), std::nullopt);  // starts alone take more
  EXPECT_EQ(explaining_mtbf_h(ask, {0.999, 600}), std::nullopt);  // and so do saves
  FaultAsk instant = ask;
  instant.detection_s = instant.restart_s = 0;
  EXPECT_EQ(explaining_mtbf_h(instant, {0.9}), std::nullopt);
}

// The two uptimes that HLAT reports, 98.81 % with automatic recovery and 77.83 % without, on 64 nodes that fail alike in both.
constexpr double kAutomatic = 0.9881, kByHand = 0.7783;

FaultAsk job_of_the_paper(double recovery_s) {
  return {.nodes = 64, .detection_s = recovery_s / 3, .restart_s = recovery_s * 2 / 3, .step_s = 3.62};
}

TEST(FaultModel, UptimesOfThePaper) {
  FaultAsk ask = job_of_the_paper(900);
  ask.node_mtbf_h = explaining_mtbf_h(ask, {kAutomatic}).value();
  EXPECT_NEAR(ask.node_mtbf_h / 24, 55.65, 0.01);
  EXPECT_NEAR(1 / ask.failures_per_s() / 3600, 20.87, 0.01);
  EXPECT_NEAR(fault_shares(ask, 3620).up(), kAutomatic, 1e-9);
  FaultAsk by_hand = ask;
  by_hand.detection_s = explaining_detection_s(ask, {kByHand}).value();
  EXPECT_NEAR(by_hand.detection_s / 3600, 5.73, 0.01);
  EXPECT_NEAR(fault_shares(by_hand, 3620).up(), kByHand, 1e-9);
  // Steps that were repeated besides, with 1000 steps between saves.
  EXPECT_NEAR(fault_shares(ask, 3620).useful, 0.9645, 0.0001);
  EXPECT_NEAR(fault_shares(by_hand, 3620).useful, 0.7597, 0.0001);
  // How much longer people took than the machine does not depend on how long that was.
  FaultAsk fast = job_of_the_paper(90);
  fast.node_mtbf_h = explaining_mtbf_h(fast, {kAutomatic}).value();
  EXPECT_NEAR(fast.node_mtbf_h, ask.node_mtbf_h / 10, 1e-6);
  EXPECT_NEAR(explaining_detection_s(fast, {kByHand}).value(), by_hand.detection_s / 10, 1e-6);
}

TEST(FaultModel, UptimesOfThePaperIfRepeatedStepsWereNotCounted) {
  FaultAsk ask = job_of_the_paper(900);
  ask.node_mtbf_h = explaining_mtbf_h(ask, {kAutomatic, 3620}).value();
  EXPECT_NEAR(ask.node_mtbf_h / 24, 167.8, 0.1);
  EXPECT_NEAR(explaining_detection_s(ask, {kByHand, 3620}).value() / 3600, 17.07, 0.05);
}

TEST(FaultModel, RefusesWhatMakesNoSense) {
  const auto refused = [](auto change, const char* name) {
    FaultAsk ask = some_job();
    change(ask);
    try {
      fault_shares(ask, 600);
      ADD_FAILURE() << name;
    } catch (const UsageError& e) {
      EXPECT_EQ(std::string(e.what()).find(name), 0u) << e.what();
    }
  };
  refused([](FaultAsk& a) { a.nodes = 0; }, "nodes = 0");
  refused([](FaultAsk& a) { a.node_mtbf_h = 0; }, "node MTBF = 0 hours");
  refused([](FaultAsk& a) { a.node_mtbf_h = std::nan(""); }, "node MTBF");
  refused([](FaultAsk& a) { a.restart_s = -1; }, "restart = -1 s");
  refused([](FaultAsk& a) { a.detection_s = kInfinite; }, "detection = inf s");
  refused([](FaultAsk& a) { a.step_s = 0; }, "step time = 0 s");
}

}  // namespace
}  // namespace hlat::test
