// Shares of the matmul rate are shown where they mean something.
#include "record/utilization.h"

#include <gtest/gtest.h>

#include "record/progress.h"

namespace hlat {
namespace {

TEST(Utilization, AboveTheWholeIsNotShown) {
  EXPECT_NE(speed_text(1000, 0.5, 0.6, 10).find("MFU 50.0%, HFU 60.0%"), std::string::npos);
  const std::string disturbed = speed_text(1000, 1.2, 1.3, 10);
  EXPECT_EQ(disturbed.find('%'), std::string::npos) << disturbed;
  EXPECT_NE(disturbed.find("MFU unknown"), std::string::npos) << disturbed;
  StepMetrics m;
  m.mfu = 1.2;
  EXPECT_EQ(progress_line(m, 10, 1, 1, 0).find("MFU"), std::string::npos);
  m.mfu = 0.2;
  EXPECT_NE(progress_line(m, 10, 1, 1, 0).find("MFU 20.0%"), std::string::npos);
}

TEST(Utilization, OfAFirstStepIsNotShown) {
  const std::string one = speed_text(1000, 0.5, 0.6, 0);
  EXPECT_EQ(one.find("MFU"), std::string::npos) << one;
  EXPECT_NE(one.find("first step"), std::string::npos) << one;
  EXPECT_FALSE(is_utilization(0.5, 0));
}

}  // namespace
}  // namespace hlat
