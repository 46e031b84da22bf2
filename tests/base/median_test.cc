// Medians of odd, even and empty lists, and the deviation of a few values.
#include "base/median.h"

#include <gtest/gtest.h>

namespace hlat::test {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({}), 0);
}

TEST(Median, TheUpperOneIsOneOfTheValues) {
  EXPECT_EQ(upper_median({3, 1, 2}), 2);
  EXPECT_EQ(upper_median({4, 1, 2, 3}), 3);
  EXPECT_EQ(upper_median({}), 0);
}

TEST(Median, DeviationIsOfTheMedianThatIsAskedFor) {
  EXPECT_EQ(median_deviation({1, 2, 4, 100}, 3), 1.4826 * 2);
  EXPECT_EQ(median_deviation({1, 2, 4, 100}, 3, median), 1.4826 * 1.5);
  EXPECT_EQ(median_deviation({}, 3), 0);
}

}  // namespace
}  // namespace hlat::test
