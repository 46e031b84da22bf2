// What a person sees while a study runs.
#include "study/study_view.h"

#include <gtest/gtest.h>

#include <sstream>

namespace hlat::test {
namespace {

TEST(StudyView, RedrawsOnATerminalAndPrintsLinesInAPipe) {
  const RunShown run{.name = "sr+seed=1", .step = 120, .steps = 900, .loss = 3.45118, .tokens_per_s = 61200, .left_s = 62};
  EXPECT_EQ(run_line(run), "sr+seed=1  step 120/900  loss 3.4512  61.2k tokens/s  1m 02s left");
  double now = 0;
  std::ostringstream pipe, terminal;
  {
    StudyView view(
        pipe, [] { return 0; }, [&] { return now; });
    for (; now < 65; now += 1) view.show({run}, "0 of 1 runs done");
    view.say("sr finished");
  }
  EXPECT_EQ(pipe.str(), run_line(run) + "\n0 of 1 runs done\n" + run_line(run) + "\n0 of 1 runs done\nsr finished\n");
  now = 1;
  {
    StudyView view(
        terminal, [] { return 20; }, [&] { return now; });
    now = 2, view.show({run}, "0 of 1");
    now = 3, view.show({run}, "1 of 1");
  }
  const std::string block = "sr+seed=1  step 120\n";
  EXPECT_EQ(terminal.str(), block + "0 of 1\n\x1b[1A\r\x1b[K\x1b[1A\r\x1b[K" + block + "1 of 1\n");
}

}  // namespace
}  // namespace hlat::test
