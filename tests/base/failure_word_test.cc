#include "base/failure_word.h"

#include <gtest/gtest.h>

namespace hlat {
namespace {

TEST(FailureWord, ComesBackAsItWasWritten) {
  for (const FailureKind kind :
       {FailureKind::non_finite, FailureKind::spike, FailureKind::health, FailureKind::alarm, FailureKind::skips}) {
    const FailureWord word{kind, 1234567890123};
    EXPECT_EQ(parse_failure(format_failure(word, "the loss is off")), word);
    EXPECT_EQ(parse_failure(format_failure(word, "")), word);
  }
  EXPECT_EQ(format_failure({FailureKind::spike, 12}, "the loss"), "[spike step=12] the loss");
  const FailureWord range{FailureKind::alarm, 300, 340};
  EXPECT_EQ(format_failure(range, "the loss"), "[alarm step=300 until=340] the loss");
  EXPECT_EQ(parse_failure("[alarm step=300 until=340] the loss"), range);
  EXPECT_EQ(parse_failure("[alarm step=300] of an older version"), (FailureWord{FailureKind::alarm, 300}));
}

TEST(FailureWord, OtherReasonsHaveNone) {
  for (const char* text :
       {"", "finished", "[spike", "[spike step=", "[spike step=12", "[spike step=x] a", "[spike step=-3] a", "[other step=3] a",
        "[alarm step=3 until=] a", "[alarm step=3 until=x] a", "[alarm step=3 until=2] a", "[alarm step=3 until=9",
        "[alarm step=3 until=99999999999999999999] a", "rank 1: [spike step=3] a", "[spike step=99999999999999999999] a"})
    EXPECT_FALSE(parse_failure(text)) << text;
}

TEST(FailureWord, AnExceptionTellsItsOwn) {
  EXPECT_EQ(reason_of(FailedStep(FailureKind::health, 7, "weights differ")), "[health step=7] weights differ");
  FailedStep alarm(FailureKind::alarm, 7, "a leak");
  alarm.until = 9;
  EXPECT_EQ(reason_of(alarm), "[alarm step=7 until=9] a leak");
  EXPECT_EQ(reason_of(NumericalError("weights differ")), "weights differ");
}

}  // namespace
}  // namespace hlat
