#include "alarm/robust.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace hlat
