// Thinning keeps what stands out, at a bounded size; smooth lines and means.
#include "report/curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace hlat {
namespace {

Curve wave(int64_t steps) {
  Curve c;
  for (int64_t s = 1; s <= steps; ++s) c.add(s, 3 + std::sin(0.01 * static_cast<double>(s)));
  return c;
}

double value_at(const Curve& c, int64_t step) {
  const auto at = std::lower_bound(c.step.begin(), c.step.end(), step);
  return at != c.step.end() && *at == step ? c.value[static_cast<size_t>(at - c.step.begin())] : NAN;
}

TEST(Thinned, ShortCurvesAreExact) {
  const Curve c = wave(100);
  const Curve t = thinned(c, 100);
  EXPECT_EQ(t.step, c.step);
  EXPECT_EQ(t.value, c.value);
  EXPECT_EQ(thinned({}, 100).size(), 0u);
}

TEST(Thinned, SpikesDipsEndsAndGapsStay) {
  Curve c = wave(100'000);
  const std::vector<std::pair<int64_t, double>> spikes = {{2, 9}, {777, 50}, {50'000, -4}, {99'998, 8}};
  for (const auto& [step, value] : spikes) c.value[static_cast<size_t>(step - 1)] = value;
  c.value[33'332] = NAN;
  for (const size_t most : {size_t{8}, size_t{100}, size_t{1500}}) {
    const Curve t = thinned(c, most);
    EXPECT_LE(t.size(), most);
    EXPECT_TRUE(std::is_sorted(t.step.begin(), t.step.end()));
    EXPECT_EQ(std::adjacent_find(t.step.begin(), t.step.end()), t.step.end()) << "no step twice";
    EXPECT_EQ(t.step.front(), 1);
    EXPECT_EQ(t.step.back(), 100'000);
    EXPECT_EQ(value_at(t, 777), 50);
    EXPECT_EQ(value_at(t, 50'000), -4);
    EXPECT_TRUE(std::any_of(t.value.begin(), t.value.end(), [](double v) { return std::isnan(v); })) << "a gap stays a gap";
  }
  const Curve fine = thinned(c, 1500);
  for (const auto& [step, value] : spikes) EXPECT_EQ(value_at(fine, step), value);
  for (size_t i = 0; i < fine.size(); ++i) {
    if (!std::isfinite(fine.value[i])) continue;
    EXPECT_EQ(fine.value[i], c.value[static_cast<size_t>(fine.step[i] - 1)]) << "points are real ones";
  }
}

TEST(Thinned, ACurveWithoutFiniteValues) {
  Curve c;
  for (int64_t s = 1; s <= 1000; ++s) c.add(s, NAN);
  EXPECT_FALSE(c.has_values());
  const Curve t = thinned(c, 50);
  EXPECT_LE(t.size(), 50u);
  EXPECT_GE(t.size(), 2u);
}

TEST(Smoothed, FollowsTheCurveWithoutItsNoiseAndGaps) {
  Curve c = wave(20'000);
  for (size_t i = 0; i < c.size(); ++i) c.value[i] += i % 2 == 0 ? 0.5 : -0.5;
  c.value[5000] = NAN;
  const Curve s = smoothed(c, 10);
  ASSERT_EQ(s.step, c.step);
  for (const int64_t step : {1000, 5001, 12'345, 19'000})
    EXPECT_NEAR(value_at(s, step), 3 + std::sin(0.01 * static_cast<double>(step)), 0.06) << step;
  EXPECT_TRUE(std::isnan(smoothed({.step = {1, 2}, .value = {NAN, NAN}}, 2).value[0]));
  EXPECT_EQ(smoothed({.step = {7}, .value = {2}}, 2).value, std::vector<double>{2});
  const Curve flat = smoothed({.step = {1, 2, 3, 4}, .value = {5, 5, 5, 5}}, 3);
  for (const double v : flat.value) EXPECT_DOUBLE_EQ(v, 5);
}

TEST(Smoothed, ASpikeDoesNotMoveIt) {
  Curve c;
  for (int64_t s = 1; s <= 200; ++s) c.add(s, s == 100 || s == 101 ? 50 : 3);
  for (const double v : smoothed(c, 5).value) EXPECT_DOUBLE_EQ(v, 3);
}

TEST(StretchMeans, AreMeansOfFiniteValues) {
  const Curve m = stretch_means({.step = {1, 2, 3, 4, 5}, .value = {1, 3, NAN, 5, 7}}, 2);
  EXPECT_EQ(m.step, (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(m.value, (std::vector<double>{2, 6}));
}

TEST(LastFinite, IsTheLastThatIsKnown) {
  EXPECT_EQ(last_finite({.step = {1, 2, 3, 4}, .value = {4, 1, 3, NAN}}), 3);
  EXPECT_TRUE(std::isnan(last_finite({})));
}

}  // namespace
}  // namespace hlat
