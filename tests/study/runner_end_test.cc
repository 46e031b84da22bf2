// Limits and signals of a study, with processes that are made up.
#include <gtest/gtest.h>

#include <csignal>

#include "study/made_runs.h"

namespace hlat::test {
namespace {

// Behind a signal one rank may still end its save.
TEST_F(StudyRunning, BehindASignalARunIsOverWhenItsRanksAreGone) {
  lingers = 60, saves = true;
  on_pause = [&] {
    if (time == 30) saves = false;
  };
  EXPECT_EQ(run({plan("a")}, {.stop_s = 5}).left, 1u);
  EXPECT_GE(time, 30);
  EXPECT_LT(time, 35);
}

TEST_F(StudyRunning, ASignalEndsRunsAndTheStudyGoesOnLater) {
  const std::vector<PlannedRun> runs = {plan("a"), plan("b"), plan("c")};
  signal_at = 15;
  const StudyEnd end = run(runs);
  EXPECT_EQ(end.signal, SIGINT);
  EXPECT_EQ(end.finished, 1u);
  EXPECT_EQ(end.left, 2u);
  EXPECT_EQ(started, (Names{"a", "b"}));
  started.clear();
  signal_at = 0;
  EXPECT_EQ(run(runs).finished, 3u);
  EXPECT_EQ(started, (Names{"b", "c"}));
}

TEST_F(StudyRunning, ALimitStartsNothingMoreAndAStopEndsRuns) {
  const StudyEnd limited = run({plan("a"), plan("b"), plan("c")}, {.limit_s = 12});
  EXPECT_EQ(limited.finished, 2u) << "the one under way ends by itself";
  EXPECT_EQ(limited.left, 1u);
  time = 0;
  const StudyEnd stopped = run({plan("d"), plan("e")}, {.stop_s = 14});
  EXPECT_EQ(stopped.finished, 1u);
  EXPECT_EQ(stopped.left, 1u);
  EXPECT_EQ(stopped.signal, 0);
}

// Both are seen only when the study has been asked to end.
TEST_F(StudyRunning, WhatFailedBeforeItWasAskedToEndHasFailed) {
  codes = {{"before", 4}, {"lost", 137}, {"bad", 2}};
  refused = {"lost", "bad"};
  for (const bool signal : {false, true}) {
    time = 0, said.clear(), signal_at = signal ? 10 : 0;
    const std::string which = signal ? "1" : "2";
    for (const char* name : {"before", "lost", "bad"}) codes[name + which] = codes[name], refused.insert(name + which);
    refused.erase("before" + which);
    const StudyEnd end = run({plan("before" + which), plan("lost" + which), plan("bad" + which)}, {.at_once = 3, .stop_s = 10});
    EXPECT_EQ(end.failed, 3u) << said;
    EXPECT_EQ(end.refused, 1u) << said;
    EXPECT_EQ(end.left, 0u) << said;
    EXPECT_NE(said.find("before" + which + " failed with exit code 4"), std::string::npos) << said;
    EXPECT_NE(said.find("last words"), std::string::npos) << said;
    EXPECT_NE(end.words().find("3 failed"), std::string::npos) << end.words();
    EXPECT_EQ(said.find("asked to end"), std::string::npos) << "they had ended: " << said;
  }
}

TEST_F(StudyRunning, WhatFailsOverItsLastSaveHasFailed) {
  codes = {{"a", 4}};
  fails_when_asked = true;
  const StudyEnd end = run({plan("a"), plan("b")}, {.at_once = 2, .stop_s = 5});
  EXPECT_EQ(end.failed, 1u) << said;
  EXPECT_NE(said.find("a failed with exit code 4"), std::string::npos) << said;
}

// What started its ranks is killed, as at the second Ctrl-C, behind their recorded end.
TEST_F(StudyRunning, TheRecordedFailureCountsWhereTheStarterIsKilled) {
  codes = {{"a", 4}};
  fails_when_asked = hangs = true, lingers = 60;
  on_pause = [&] {
    if (time == 10) signal_at = 9;
  };
  const StudyEnd end = run({plan("a")}, {.stop_s = 5});
  EXPECT_EQ(end.failed, 1u) << said;
  EXPECT_NE(said.find("a failed with exit code 4"), std::string::npos) << said;
}

// A scheduler sends its signal to all processes: the runs have ended before the study asks them.
TEST_F(StudyRunning, RunsThatASignalHasEndedBeforeAreLeft) {
  codes = {{"saved", 6}, {"ended", 143}};
  signal_at = 10;
  const StudyEnd end = run({plan("saved"), plan("ended")}, {.at_once = 2});
  EXPECT_EQ(end.left, 2u) << said;
  EXPECT_EQ(end.failed, 0u) << said;
}

// Saves can hang: who waits for them can still end the study.
TEST_F(StudyRunning, SignalsAreHeardWhenTheTimeIsOver) {
  hangs = true;
  signal_at = 6;
  const StudyEnd end = run({plan("a")}, {.stop_s = 3});
  EXPECT_EQ(end.signal, SIGINT);
  EXPECT_LT(time, 10) << "the second one ends the run, which would have gone on until then";
}

}  // namespace
}  // namespace hlat::test
