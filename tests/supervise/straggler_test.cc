#include "supervise/straggler.h"

#include <gtest/gtest.h>

#include <random>

#include "supervise/fake_run.h"

namespace hlat {
namespace {

LaunchConfig above(double factor, int64_t window) {
  LaunchConfig config;
  config.straggler = factor;
  config.straggler_steps = window;
  return config;
}

// Steps of all ranks with these compute times; returns whoever is told.
std::vector<Straggler> steps(FakeRun& run, StragglerWatch& watch, int64_t first, int64_t count, const std::vector<double>& seconds,
                             double noise = 0) {
  std::mt19937 random(static_cast<unsigned>(first));
  std::uniform_real_distribution<double> factor(1, 1 + noise);
  std::vector<Straggler> told;
  for (int64_t step = first; step < first + count; ++step) {
    for (int r = 0; r < run.size(); ++r)
      run.view(r).steps = {{.step = step, .seconds = 1, .compute_s = seconds[static_cast<size_t>(r)] * factor(random)}};
    for (const Straggler& s : watch.look(run.views())) told.push_back(s);
  }
  return told;
}

TEST(Straggler, IsToldOnceWithItsFactorAndHostAndAgainAfterItRecovered) {
  FakeRun run(1, 1, 4);
  StragglerWatch watch(above(1.5, 20), 4);
  EXPECT_TRUE(steps(run, watch, 1, 19, {0.1, 0.1, 0.3, 0.1}).empty());
  const auto told = steps(run, watch, 20, 100, {0.1, 0.1, 0.3, 0.1});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].rank, 2);
  EXPECT_EQ(told[0].host, "node2");
  EXPECT_NEAR(told[0].factor, 3, 1e-9);
  EXPECT_EQ(told[0].last_step - told[0].first_step, 19);
  EXPECT_TRUE(steps(run, watch, 120, 40, {0.1, 0.1, 0.1, 0.1}).empty());
  EXPECT_EQ(steps(run, watch, 160, 40, {0.1, 0.1, 0.3, 0.1}).size(), 1u);
}

TEST(Straggler, StepsThatWereLeftOutAreNotCompared) {
  FakeRun run(1, 1, 2);
  StragglerWatch watch(above(1.5, 10), 2);
  for (int64_t step = 1; step <= 30; ++step) {
    for (int r = 0; r < 2; ++r) run.view(r).steps = {{.step = step, .seconds = 0, .compute_s = r == 0 ? 0.01 : 0.001}};
    EXPECT_TRUE(watch.look(run.views()).empty());
  }
}

TEST(Straggler, OfTwoTheSlowerOne) {
  FakeRun run(1, 1, 2);
  StragglerWatch watch(above(1.5, 10), 2);
  const auto told = steps(run, watch, 1, 30, {0.2, 0.1});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].rank, 0);
}

TEST(Straggler, StagesOfAPipelineAreNotCompared) {
  FakeRun run(1, 2, 2);
  StragglerWatch watch(above(1.5, 10), 4);
  EXPECT_TRUE(steps(run, watch, 1, 50, {0.1, 0.1, 0.5, 0.5}).empty());
  const auto told = steps(run, watch, 51, 50, {0.1, 0.1, 0.5, 0.9});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].rank, 3);
}

TEST(Straggler, NoiseAndSingleSlowStepsAreNone) {
  FakeRun run(1, 1, 4);
  StragglerWatch watch(above(1.5, 20), 4);
  for (int64_t i = 0; i < 50; ++i) {
    EXPECT_TRUE(steps(run, watch, 10 * i, 8, {0.1, 0.1, 0.1, 0.1}, 0.8).empty());
    EXPECT_TRUE(steps(run, watch, 10 * i + 8, 2, {0.1, 0.9, 0.1, 0.1}).empty());
  }
}

TEST(Straggler, ZeroLooksForNoneAndManyRanksAreCompared) {
  FakeRun run(1, 1, 12);
  std::vector<double> seconds(12, 0.1);
  seconds[7] = 0.4;
  StragglerWatch off(above(0, 10), 12), watch(above(2, 10), 12);
  EXPECT_TRUE(steps(run, off, 1, 30, seconds).empty());
  const auto told = steps(run, watch, 1, 30, seconds);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].rank, 7);
}

}  // namespace
}  // namespace hlat
