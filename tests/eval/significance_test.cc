// Tests of significance against values computed by hand.
#include "eval/significance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hlat {
namespace {

TEST(Significance, McNemarIsExact) {
  EXPECT_DOUBLE_EQ(mcnemar_p(0, 0), 1);
  EXPECT_DOUBLE_EQ(mcnemar_p(5, 5), 1);
  EXPECT_NEAR(mcnemar_p(0, 5), 2.0 / 32, 1e-12);
  EXPECT_NEAR(mcnemar_p(1, 9), 2.0 * (1 + 10) / 1024, 1e-12);
  EXPECT_NEAR(mcnemar_p(9, 1), mcnemar_p(1, 9), 1e-15);
  EXPECT_NEAR(mcnemar_p(4500, 4700), 0.038006880018679, 1e-9);
}

TEST(Significance, NormalAndPairs) {
  EXPECT_NEAR(normal_p(1.959964), 0.05, 1e-6);
  EXPECT_NEAR(normal_p(-1.959964), 0.05, 1e-6);
  // Mean 2/3, variance 4/15, error sqrt(4/90): z = sqrt(10).
  EXPECT_NEAR(paired_p(std::vector<double>{1, 0, 1, 1, 0, 1}), std::erfc(std::sqrt(10.0 / 2)), 1e-12);
  EXPECT_DOUBLE_EQ(paired_p(std::vector<double>{0, 0, 0}), 1);
  EXPECT_DOUBLE_EQ(paired_p(std::vector<double>{0.5, 0.5}), 0);
  EXPECT_TRUE(std::isnan(paired_p(std::vector<double>{0.5})));
  EXPECT_NEAR(unpaired_p(0.1, 0.03, 0.04), normal_p(2), 1e-12);
  EXPECT_TRUE(std::isnan(unpaired_p(0.1, NAN, 0.04)));
}

}  // namespace
}  // namespace hlat
