// Confidence intervals of paired differences, against tables of Student's t.
#include "study/paired.h"

#include <gtest/gtest.h>

namespace hlat::test {
namespace {

TEST(StudyPaired, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(student_t975(1), 12.7062, 1e-4);
  EXPECT_NEAR(student_t975(2), 4.30265, 1e-5);
  EXPECT_NEAR(student_t975(3), 3.18245, 1e-5);
  EXPECT_NEAR(student_t975(4), 2.77645, 1e-5);
  EXPECT_NEAR(student_t975(9), 2.26216, 1e-5);
  EXPECT_NEAR(student_t975(30), 2.04227, 1e-5);
  EXPECT_NEAR(student_t975(1000), 1.96234, 1e-5);
}

TEST(StudyPaired, AnIntervalIsAroundTheMean) {
  const auto found = paired_interval({0.1, 0.2, 0.3});  // s = 0.1
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->low, 0.2 - 0.248414, 1e-5);
  EXPECT_NEAR(found->high, 0.2 + 0.248414, 1e-5);
  EXPECT_FALSE(paired_interval({0.1})) << "one pair tells no spread";
  EXPECT_FALSE(paired_interval({}));
}

}  // namespace
}  // namespace hlat::test
