// The progress line of a batch of prompts and its estimate.
#include "cli/batch_shown.h"

#include <gtest/gtest.h>

#include <sstream>

namespace hlat {
namespace {

TEST(BatchShown, ATerminalHasOneLineWithAnEstimateOfThisCall) {
  double now = 100;
  std::ostringstream out;
  BatchShown shown(out, {.live = true, .now = [&] { return now; }, .width = [] { return 80; }}, 10, 50);
  shown.show(12);
  EXPECT_EQ(out.str(), "") << "too soon";
  now = 110;
  shown.show(10);
  EXPECT_EQ(out.str(), "\r10 of 50 prompts\x1b[K") << "no pace yet";
  out.str("");
  now = 120;
  shown.show(20);
  EXPECT_EQ(out.str(), "\r20 of 50 prompts, ETA 1m 00s\x1b[K") << "10 in 20 s";
  out.str("");
  shown.end_line();
  EXPECT_EQ(out.str(), "\r\x1b[K");
}

TEST(BatchShown, APipeGetsALineEveryHalfMinute) {
  double now = 0;
  std::ostringstream out;
  BatchShown shown(out, {.live = false, .now = [&] { return now; }, .width = [] { return 80; }}, 0, 3000);
  now = 29;
  shown.show(900);
  EXPECT_EQ(out.str(), "");
  now = 30;
  shown.show(1000);
  shown.show(1001);
  EXPECT_EQ(out.str(), "1000 of 3000 prompts, ETA 1m 00s\n");
}

}  // namespace
}  // namespace hlat
