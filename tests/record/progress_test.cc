// Progress with a clock that only tests move, and the human number formats.
#include "record/progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "base/format.h"

namespace hlat {
namespace {

struct Screen {
  std::ostringstream out;
  double now = 100;
  int width = 200;

  ProgressOptions options(bool live, int64_t total) {
    ProgressOptions o;
    o.total_steps = total;
    o.live = live;
    o.now = [this] { return now; };
    o.width = [this] { return width; };
    return o;
  }
  int count(const std::string& what) const {
    int n = 0;
    const std::string text = out.str();
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
  }
};

StepMetrics at_step(int64_t step, double floor = 1.25) {
  StepMetrics m;
  m.step = step;
  m.loss = 1.5;
  m.floor = floor;
  m.tokens_per_s = 23456;
  m.mfu = 0.612;
  return m;
}

TEST(Progress, ALineThatIsSaidStaysAndTheLiveLineGoesOnBelowIt) {
  Screen screen, pipe;
  Progress live(screen.out, screen.options(true, 10)), plain(pipe.out, pipe.options(false, 10));
  for (Progress* p : {&live, &plain}) p->step(at_step(1));
  screen.out.str("");
  pipe.out.str("");
  live.say("step 1: piqa acc 0.500");
  EXPECT_EQ(screen.out.str(), "\rstep 1: piqa acc 0.500\x1b[K\n");
  live.say("more");
  EXPECT_TRUE(screen.out.str().ends_with("\nmore\n")) << "no line is open";
  plain.say("step 1: piqa acc 0.500");
  EXPECT_EQ(pipe.out.str(), "step 1: piqa acc 0.500\n");
}

TEST(Progress, TerminalShowsHowFarTheFirstStepIs) {
  Screen screen, pipe;
  Progress live(screen.out, screen.options(true, 10)), plain(pipe.out, pipe.options(false, 10));
  for (Progress* p : {&live, &plain}) p->first_step(0, 16);
  EXPECT_EQ(screen.count("first step of 10: micro-batch 1 of 16"), 1);
  live.first_step(1, 16);
  EXPECT_EQ(screen.count("micro-batch 2"), 0) << "redrawn too soon";
  screen.now += 60;
  live.first_step(7, 16);
  EXPECT_EQ(screen.count("micro-batch 8 of 16, 1m 00s"), 1);
  live.step(at_step(1));
  screen.now += 60;
  live.first_step(3, 16);
  EXPECT_EQ(screen.count("first step"), 2) << "later steps have a line of their own";
  EXPECT_EQ(pipe.out.str(), "");
}

TEST(Progress, PipeShowsFirstAndLastStepAndAboutOneLineASecond) {
  Screen s;
  Progress progress(s.out, s.options(false, 100));
  for (int64_t step = 1; step <= 100; ++step) {
    s.now += 0.3;
    progress.step(at_step(step));
  }
  progress.finish();
  const std::string text = s.out.str();
  EXPECT_EQ(text.find("step   1/100  loss 1.5000 (floor 1.2500)  23.5k tokens/s  MFU 61.2%  ETA 30s  elapsed 0.30s\n"), 0u) << text;
  EXPECT_NE(text.find("step 100/100  loss 1.5000 (floor 1.2500)  23.5k tokens/s  MFU 61.2%  elapsed 30s\n"), std::string::npos) << text;
  EXPECT_EQ(s.count("\n"), 1 + 24 + 1) << text;  // every fourth step, 1.2 s apart, is due: 5, 9, ..., 97
  EXPECT_EQ(s.count("\r") + s.count("\x1b"), 0);
}

TEST(Progress, PipeShowsSlowStepsAll) {
  Screen s;
  Progress progress(s.out, s.options(false, 5));
  for (int64_t step = 1; step <= 5; ++step) {
    s.now += 60;
    progress.step(at_step(step));
  }
  progress.finish();
  EXPECT_EQ(s.count("\n"), 5);
}

TEST(Progress, LiveLineIsRedrawnInPlaceAtMostTenTimesASecond) {
  Screen s;
  Progress progress(s.out, s.options(true, 1000));
  for (int64_t step = 1; step <= 1000; ++step) {
    s.now += 0.001;
    progress.step(at_step(step));
  }
  EXPECT_LE(s.count("\r"), 12);
  EXPECT_GE(s.count("\r"), 9);
  EXPECT_EQ(s.count("\n"), 0);
  EXPECT_NE(s.out.str().find("step 1000/1000"), std::string::npos);
  progress.finish();
  progress.finish();
  EXPECT_EQ(s.count("\n"), 1);
  EXPECT_EQ(s.out.str().back(), '\n');
}

TEST(Progress, LiveLineNeverWraps) {
  for (const int width : {1, 10, 20, 45, 60, 80, 200}) {
    Screen s;
    s.width = width;
    {
      Progress progress(s.out, s.options(true, 1000));
      progress.step(at_step(7));
    }
    const std::string text = s.out.str();
    const size_t end = text.find("\x1b[K");
    ASSERT_NE(end, std::string::npos);
    EXPECT_LE(static_cast<int>(end) - 1, std::max(width - 1, 1)) << text;
    // Whole parts are dropped from the end, not cut, as long as the step fits.
    EXPECT_EQ(text.find("loss 1.5000 (floor 1.2500)") != std::string::npos, width >= 60 || width == 45) << text;
  }
}

TEST(Progress, WindowMayChangeWhileRunning) {
  Screen s;
  Progress progress(s.out, s.options(true, 10));
  progress.step(at_step(1));
  s.width = 20;
  s.now += 1;
  const size_t before = s.out.str().size();
  progress.step(at_step(2));
  EXPECT_LE(s.out.str().size() - before, 20u + 4);
}

TEST(Progress, EndOfTheObjectShowsTheLatestStepAndEndsTheLine) {
  for (const bool live : {true, false}) {
    Screen s;
    {
      Progress progress(s.out, s.options(live, 10));
      progress.step(at_step(1));
      progress.step(at_step(2));  // held back: no time has passed
      EXPECT_EQ(s.out.str().find("step  2/10"), std::string::npos);
    }  // as when an exception passes
    EXPECT_NE(s.out.str().find("step  2/10"), std::string::npos);
    EXPECT_EQ(s.out.str().back(), '\n');
  }
  Screen s;
  { Progress progress(s.out, s.options(true, 10)); }
  EXPECT_EQ(s.out.str(), "");
}

TEST(Progress, EtaOfAContinuedRunCountsOnlyItsOwnSteps) {
  Screen s;
  Progress progress(s.out, s.options(false, 100));
  for (int64_t step = 91; step <= 95; ++step) {
    s.now += 2;
    progress.step(at_step(step));
  }
  EXPECT_NE(s.out.str().find("step  95/100  loss 1.5000 (floor 1.2500)  23.5k tokens/s  MFU 61.2%  ETA 10s"), std::string::npos)
      << s.out.str();
}

TEST(Progress, UnknownFloorIsNotShown) {
  EXPECT_EQ(progress_line(at_step(3, std::nan("")), 9, 1, 2, 0),
            "step 3/9  loss 1.5000  23.5k tokens/s  MFU 61.2%  ETA 2.0s  elapsed 1.0s");
}

TEST(Progress, CountsAlarms) {
  Screen s;
  Progress progress(s.out, s.options(false, 100));
  progress.step(at_step(1));
  EXPECT_EQ(s.out.str().find("alarm"), std::string::npos) << s.out.str();
  progress.alarm("step 2: alarm leak: too good");
  EXPECT_NE(s.out.str().find("step 2: alarm leak: too good\n"), std::string::npos) << s.out.str();
  for (int64_t step = 2; step <= 3; ++step) s.now += 2, progress.step(at_step(step));
  EXPECT_NE(s.out.str().find("loss 1.5000 (floor 1.2500)  1 alarm  "), std::string::npos) << s.out.str();
}

TEST(Format, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes((uint64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(1288490189), "1.2 GiB");
  EXPECT_EQ(format_bytes(~uint64_t{0}), "16.0 EiB");
}

TEST(Format, Counts) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(950), "950");
  EXPECT_EQ(format_count(1.234), "1.23");
  EXPECT_EQ(format_count(999.7), "1.00k");
  EXPECT_EQ(format_count(12345), "12.3k");
  EXPECT_EQ(format_count(999999), "1.00M");
  EXPECT_EQ(format_count(6738415616), "6.74B");
  EXPECT_EQ(format_count(-1500), "-1.50k");
  EXPECT_EQ(format_count(std::nan("")), "nan");
}

TEST(Format, Durations) {
  EXPECT_EQ(format_duration(0.354), "0.35s");
  EXPECT_EQ(format_duration(4.2), "4.2s");
  EXPECT_EQ(format_duration(9.97), "10s");
  EXPECT_EQ(format_duration(59.6), "1m 00s");
  EXPECT_EQ(format_duration(83), "1m 23s");
  EXPECT_EQ(format_duration(7500), "2h 05m");
  EXPECT_EQ(format_duration(273600), "3d 04h");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "?");
}

}  // namespace
}  // namespace hlat
