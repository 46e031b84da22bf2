#include "alarm/robust.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/made_curves.h"

namespace hlat {
namespace {

TEST(RobustLine, SingleValuesDoNotMoveIt) {
  std::vector<double> x, y;
  for (int i = 0; i < 20; ++i) x.push_back(i), y.push_back(i == 7 || i == 12 ? 100 : 3 - 0.5 * i);
  const RobustLine line = line_through(x, y);
  EXPECT_NEAR(line.slope, -0.5, 1e-9);
  EXPECT_NEAR(line.at(30), -12, 1e-9);
  EXPECT_NEAR(line.spread, 0, 1e-9);
}

TEST(NoiseOf, IsTheDeviationAndSingleValuesDoNotMoveIt) {
  std::vector<double> values;
  for (int i = 0; i < 64; ++i) values.push_back(std::sqrt(3.0) * alarm_noise(i, 1));
  const double noise = noise_of(values);
  EXPECT_NEAR(noise, 1, 0.15);
  for (const double far : {10.0, 1e3, 1e9}) {
    std::vector<double> spoiled = values;
    spoiled[20] += far;
    EXPECT_LT(noise_of(spoiled), 1.3 * noise) << far;
    for (int i = 32; i < 64; ++i) values[static_cast<size_t>(i)] += far;  // a level that changes
    EXPECT_LT(noise_of(values), 1.3 * noise) << far;
    for (int i = 32; i < 64; ++i) values[static_cast<size_t>(i)] -= far;
  }
  // Where most neighbours are equal there is no typical move.
  std::vector<double> steps(16, 1.0);
  steps[8] = 2;
  EXPECT_NEAR(noise_of(steps), std::sqrt(2.0 / 30), 1e-12);
}

}  // namespace
}  // namespace hlat
