// The order of a study's runs and what their ends come to, with processes that are made up.
#include "study/runner.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "record/folder_lease.h"
#include "study/made_runs.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

TEST_F(StudyRunning, RunsAreStartedInOrderAndNotAgain) {
  const std::vector<PlannedRun> runs = {plan("a"), plan("b"), plan("c")};
  const StudyEnd end = run(runs);
  EXPECT_EQ(started, (Names{"a", "b", "c"}));
  EXPECT_EQ(end.finished, 3u);
  EXPECT_EQ(most_live, 1);
  started.clear();
  EXPECT_EQ(run(runs).finished, 3u);
  EXPECT_TRUE(started.empty());
}

TEST_F(StudyRunning, SeveralAtOnce) {
  EXPECT_EQ(run({plan("a"), plan("b"), plan("c"), plan("d")}, {.at_once = 3}).finished, 4u);
  EXPECT_EQ(most_live, 3);
}

TEST_F(StudyRunning, NumbersThatWentWrongAreAResultAndOtherFailuresAreTold) {
  codes = {{"nan", 5}, {"bad", 2}};
  const std::vector<PlannedRun> runs = {plan("nan"), plan("bad"), plan("good")};
  const StudyEnd end = run(runs);
  EXPECT_EQ(end.numbers, 1u);
  EXPECT_EQ(end.failed, 1u);
  EXPECT_EQ(end.finished, 1u) << "the study continues with the rest";
  EXPECT_NE(said.find("bad failed with exit code 2"), std::string::npos) << said;
  EXPECT_NE(said.find("last words"), std::string::npos) << said;
  EXPECT_NE(said.find("the loss is nan"), std::string::npos) << said;
  started.clear();
  run(runs);
  EXPECT_EQ(started, Names{"bad"}) << "what failed is tried again";
}

TEST_F(StudyRunning, FailuresOnBadInputAreCountedApart) {
  codes = {{"bad", 2}, {"fault", 4}};
  refused = {"odd"};
  codes["odd"] = 2;
  const StudyEnd end = run({plan("bad"), plan("fault"), plan("good"), plan("odd")});
  EXPECT_EQ(end.failed, 3u) << said;
  EXPECT_EQ(end.refused, 2u) << said;
}

TEST_F(StudyRunning, ARunThatCannotBeStartedLeavesTheOthersAlone) {
  broken["b"] = "cannot create the run folder b: No space left on device";
  const StudyEnd end = run({plan("a"), plan("b"), plan("c")}, {.at_once = 2});
  EXPECT_EQ(started, (Names{"a", "c"}));
  EXPECT_EQ(end.finished, 2u);
  EXPECT_EQ(end.failed, 1u);
  EXPECT_NE(said.find("b cannot be started: cannot create the run folder b: No space left"), std::string::npos) << said;
  const StudyEnd alone = run({plan("b")});
  EXPECT_EQ(alone.failed, 1u);
}

// mpirun waits for minutes where its ranks have ended with an error.
TEST_F(StudyRunning, ARunIsOverWhenItsFolderSaysSo) {
  lingers = 120;
  codes = {{"nan", 5}, {"bad", 4}};
  const std::vector<PlannedRun> runs = {plan("nan"), plan("bad")};
  const StudyEnd end = run(runs);
  EXPECT_EQ(end.numbers, 1u);
  EXPECT_EQ(end.failed, 1u);
  EXPECT_NE(said.find("bad failed with exit code 4 after"), std::string::npos) << "not that of a process that was killed: " << said;
  EXPECT_LT(time, 35) << "10 s each, and some";
  // The end of an earlier process is not that of the next.
  const double begin = time;
  lingers = 0, codes = {}, started.clear();
  EXPECT_EQ(run(runs).finished, 1u) << said;
  EXPECT_EQ(started, Names{"bad"});
  EXPECT_GE(time, begin + 10);
}

TEST_F(StudyRunning, AFolderThatIsHeldIsNotOver) {
  lingers = 60;
  codes = {{"a", 4}};
  const std::vector<PlannedRun> runs = {plan("a")};
  fs::create_directories(runs[0].config.run.dir);
  std::optional<FolderLease> lease;
  on_pause = [&] {
    if (time == 5) lease.emplace(runs[0].config.run.dir, 60.0);
    if (time == 40) lease.reset();
  };
  EXPECT_EQ(run(runs).failed, 1u);
  EXPECT_GE(time, 42) << "the folder was held";
  EXPECT_LT(time, 50);
}

}  // namespace
}  // namespace hlat::test
