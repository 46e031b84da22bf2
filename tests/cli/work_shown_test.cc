// Progress of long work on files: on a terminal only.
#include "cli/work_shown.h"

#include <gtest/gtest.h>

#include <sstream>

namespace hlat {
namespace {

TEST(WorkShown, ALineOnATerminalThatIsGoneInTheEnd) {
  double now = 0;
  ProgressOptions options{.live = true, .now = [&] { return now; }, .width = [] { return 120; }};
  std::ostringstream out;
  {
    WorkShown shown(out, options, "verifying step_10", uint64_t{4} << 30);
    shown.add(1 << 20);
    EXPECT_EQ(out.str(), "") << "work that ends in a moment shows nothing";
    now = 2;
    shown.done()(uint64_t{1} << 30);
    EXPECT_EQ(out.str(), "\rverifying step_10: 1.0 GiB of 4.0 GiB, 512.5 MiB/s, ETA 6.0s\x1b[K");
    now = 2.1;
    shown.add(1 << 20);
  }
  EXPECT_TRUE(out.str().ends_with("ETA 6.0s\x1b[K\r\x1b[K")) << out.str();
}

TEST(WorkShown, NothingInAPipe) {
  double now = 0;
  std::ostringstream out;
  {
    WorkShown shown(out, {.live = false, .now = [&] { return now; }, .width = [] { return 80; }}, "x", 100);
    now = 10;
    shown.add(50);
  }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace hlat
