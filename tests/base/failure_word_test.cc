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
}

TEST(FailureWord, OtherReasonsHaveNone) {
  for (const char* text : {"", "finished", "[spike", "[spike step=", "[spike step=12", "[spike step=x] a", "[spike step=-3] a",
                           "[other step=3] a", "rank 1: [spike step=3] a", "[spike step=99999999999999999999] a"})
    EXPECT_FALSE(parse_failure(text)) << text;
}

TEST(FailureWord, AnExceptionTellsItsOwn) {
  EXPECT_EQ(reason_of(FailedStep(FailureKind::health, 7, "weights differ")), "[health step=7] weights differ");
  EXPECT_EQ(reason_of(NumericalError("weights differ")), "weights differ");
}

}  // namespace
}  // namespace hlat
