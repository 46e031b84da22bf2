// A run folder that is continued: no gap, no repeated step, nothing lost; and one that is set aside as a whole.
#include "record/run_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "record/metrics_tail.h"
#include "support/event_file.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;
using Steps = std::vector<int64_t>;

Steps counted(int64_t first, int64_t last) {
  Steps steps(static_cast<size_t>(last - first + 1));
  std::iota(steps.begin(), steps.end(), first);
  return steps;
}

std::vector<fs::path> event_files(const fs::path& dir) {
  std::vector<fs::path> files;
  for (const auto& e : fs::directory_iterator(dir))
    if (e.path().filename().string().starts_with("events.out.")) files.push_back(e.path());
  return files;
}

class ContinuedFolder : public testing::Test {
 protected:
  fs::path dir() const { return temp_.path("run"); }
  fs::path previous(int n) const { return dir() / ("previous_" + std::to_string(n)); }

  // A process that does steps [first, last] behind `behind` and ends. Its losses tell its steps from those of others.
  void run(std::optional<int64_t> behind, int64_t first, int64_t last, const std::string& config = "config") {
    RunFolder folder(dir(), config, true, 60, {}, {.goes_on = behind.has_value()});
    if (behind) folder.go_on(*behind);
    for (int64_t step = first; step <= last; ++step) folder.record(StepMetrics{.step = step, .tokens = step * 10, .loss = ++loss_});
  }

  static Steps metrics_steps(const fs::path& folder) {
    Steps steps;
    std::ifstream in(folder / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) steps.push_back(nlohmann::json::parse(line).at("step"));
    return steps;
  }

  // Of all event files of a folder, each of which begins with its version.
  static Steps event_steps(const fs::path& folder) {
    Steps steps;
    for (const fs::path& file : event_files(folder)) {
      const std::vector<std::string> records = read_records(file);
      for (size_t i = 0; i < records.size(); ++i) {
        const auto event = parse(records[i]);
        if (i == 0)
          EXPECT_EQ(only_field(event, 3).bytes, "brain.Event:2");
        else
          steps.push_back(static_cast<int64_t>(only_field(event, 2).number));
      }
    }
    std::sort(steps.begin(), steps.end());
    return steps;
  }

  std::string log() const { return test::slurp((dir() / "log.txt").string()); }

  void expect_steps(const fs::path& folder, const Steps& steps) const {
    EXPECT_EQ(metrics_steps(folder), steps) << folder;
    EXPECT_EQ(event_steps(folder), steps) << folder;
  }

  test::TempDir temp_;
  double loss_ = 0;
};

TEST_F(ContinuedFolder, WhatTheStartWasChosenFromIsCheckedUnderTheLeaseBeforeAnythingIsMoved) {
  run({}, 1, 3);
  bool held = false;
  const auto check = [&] {
    held = fs::exists(dir() / "run.lock");
    fail<FaultError>("another process wrote there");
  };
  EXPECT_THROW(RunFolder(dir(), "other config", true, 60, {}, {.check = check}), FaultError);
  EXPECT_TRUE(held);
  EXPECT_EQ(metrics_steps(dir()), counted(1, 3));
  EXPECT_FALSE(fs::exists(previous(1)));
  EXPECT_FALSE(fs::exists(dir() / "run.lock"));
}

// Restarts may be many: records of repeated steps do not pile up, and nothing else is removed.
TEST_F(ContinuedFolder, OnlyTheLatestFoldersOfRepeatedStepsStay) {
  run({}, 1, 8);
  run(5, 6, 8, "another config");             // previous_1 has that of before
  for (int i = 0; i < 25; ++i) run(5, 6, 8);  // the first of them changes the config again, into previous_2
  EXPECT_TRUE(fs::exists(previous(1) / "config.yaml") && fs::exists(previous(2) / "config.yaml"));
  EXPECT_FALSE(fs::exists(previous(3)));
  int64_t kept = 0;
  for (const auto& e : fs::directory_iterator(dir())) kept += e.path().filename().string().starts_with("previous_") ? 1 : 0;
  EXPECT_EQ(kept, 22) << "two with a config, and twenty";
  expect_steps(previous(26), {6, 7, 8});
  expect_steps(dir(), counted(1, 8));
}

TEST_F(ContinuedFolder, GoesOnWithoutAGapOrARepeatedStepAndLinesPastTheResumedStepAreSetAside) {
  run({}, 1, 8);
  run(5, 6, 9);
  expect_steps(dir(), counted(1, 9));
  expect_steps(previous(1), {6, 7, 8});
  EXPECT_FALSE(fs::exists(previous(1) / "config.yaml")) << "it is the same";
  EXPECT_NE(log().find("the run continues after step 5"), std::string::npos);
  EXPECT_NE(log().find("metrics of steps 6 to 8 were moved to " + previous(1).string()), std::string::npos) << log();
  // The first attempt's lines are those that were set aside, the second's are those that count.
  std::ifstream old(previous(1) / "metrics.jsonl"), now(dir() / "metrics.jsonl");
  std::string line;
  std::getline(old, line);
  EXPECT_EQ(nlohmann::json::parse(line).at("loss"), 6);
  for (int i = 0; i < 6; ++i) std::getline(now, line);
  EXPECT_EQ(nlohmann::json::parse(line).at("loss"), 9);
}

TEST_F(ContinuedFolder, TwiceInARowAndFurtherBack) {
  run({}, 1, 8);
  run(5, 6, 9);
  run(7, 8, 12);
  expect_steps(dir(), counted(1, 12));
  expect_steps(previous(2), {8, 9});
  run(3, 4, 4, "other config");
  expect_steps(dir(), counted(1, 4));
  expect_steps(previous(3), counted(4, 12));
  EXPECT_EQ(event_files(previous(3)).size(), 3u) << "one was cut, two begin behind the resumed step";
  EXPECT_EQ(test::slurp((dir() / "config.yaml").string()), "other config");
  EXPECT_EQ(test::slurp((previous(3) / "config.yaml").string()), "config");
}

TEST_F(ContinuedFolder, SetsNothingAsideWhereThereIsNothing) {
  run({}, 1, 5);
  run(5, 6, 7);
  run(7, 8, 8);
  expect_steps(dir(), counted(1, 8));
  EXPECT_FALSE(fs::exists(previous(1)));
  EXPECT_EQ(log().find("moved"), std::string::npos) << log();
}

TEST_F(ContinuedFolder, AnEndThatWasTornGoesAway) {
  for (const std::string& torn : std::vector<std::string>{R"({"step":6,"tok)", std::string(100, '\0'), "{"}) {
    fs::remove_all(dir());
    run({}, 1, 5);
    std::ofstream(dir() / "metrics.jsonl", std::ios::app | std::ios::binary) << torn;
    const fs::path events = event_files(dir()).at(0);
    const std::string first = test::slurp(events.string()).substr(0, 30);
    std::ofstream(events, std::ios::app | std::ios::binary) << first;  // the beginning of a record
    run(5, 6, 7);
    expect_steps(dir(), counted(1, 7));
    EXPECT_FALSE(fs::exists(previous(1)));
  }
}

TEST_F(ContinuedFolder, ARecordOfTheRightLengthWithOtherBytesIsNone) {
  run({}, 1, 5);
  const fs::path events = event_files(dir()).at(0);
  std::string bytes = test::slurp(events.string());
  bytes[bytes.size() - 8] = static_cast<char>(bytes[bytes.size() - 8] ^ 1);
  std::ofstream(events, std::ios::binary) << bytes;
  run(5, 6, 6);
  EXPECT_EQ(event_steps(dir()), (Steps{1, 2, 3, 4, 6}));
}

TEST_F(ContinuedFolder, KilledBetweenTheCopyAndTheCutNothingIsLostOrThereTwice) {
  run({}, 1, 8);
  const fs::path before = temp_.path("before");
  fs::copy(dir(), before, fs::copy_options::recursive);
  run(5, 6, 5);  // sets aside and ends
  expect_steps(previous(1), {6, 7, 8});
  // Metrics and events as they were before the cut, then only the events: what a killed process may leave.
  for (const bool metrics_cut : {false, true}) {
    for (const fs::path& file : event_files(before)) fs::copy(file, dir() / file.filename(), fs::copy_options::overwrite_existing);
    if (!metrics_cut) fs::copy(before / "metrics.jsonl", dir() / "metrics.jsonl", fs::copy_options::overwrite_existing);
    run(5, 6, 5);
    expect_steps(dir(), counted(1, 5));
    EXPECT_EQ(event_steps(previous(metrics_cut ? 3 : 2)), (Steps{6, 7, 8}));
  }
  EXPECT_EQ(metrics_steps(previous(2)), (Steps{6, 7, 8}));
  expect_steps(previous(1), {6, 7, 8});
}

TEST_F(ContinuedFolder, MissingLinesAreToldAndTheRunGoesOn) {
  run({}, 1, 5);
  run(8, 9, 10);
  expect_steps(dir(), {1, 2, 3, 4, 5, 9, 10});
  EXPECT_NE(log().find("metrics.jsonl has no lines of steps 6 to 8"), std::string::npos) << log();
  fs::remove_all(dir());
  run(8, 9, 10);
  expect_steps(dir(), {9, 10});
  EXPECT_NE(log().find("metrics.jsonl has none of the steps up to 8"), std::string::npos) << log();
  EXPECT_EQ(test::slurp((dir() / "config.yaml").string()), "config");
}

TEST_F(ContinuedFolder, ReportsTheLastStep) {
  EXPECT_FALSE(last_recorded_step(dir() / "metrics.jsonl"));
  run({}, 1, 8);
  std::ofstream(dir() / "metrics.jsonl", std::ios::app) << R"({"step":3,"event":"saved"})"
                                                        << "\n"
                                                        << R"({"step":9,"tok)";
  EXPECT_EQ(last_recorded_step(dir() / "metrics.jsonl"), 8) << "neither an event nor a torn line is a step";
  RunFolder folder(dir(), "config", false, 60, {}, {.goes_on = true});
  folder.go_on(6);
  EXPECT_EQ(folder.last_step(), 6);
  folder.record(StepMetrics{.step = 7, .tokens = 70});
  EXPECT_EQ(folder.last_step(), 7);
  EXPECT_EQ(metrics_steps(dir()), counted(1, 7));
}

TEST_F(ContinuedFolder, EventsBetweenStepsDoNotHideStepsPastTheResumedOne) {
  fs::create_directories(dir());
  std::ofstream(dir() / "metrics.jsonl") << R"({"step":4,"tokens":40})"
                                         << "\n"
                                         << R"({"step":5,"tokens":50})"
                                         << "\n"
                                         << R"({"step":4,"event":"saved"})"
                                         << "\n"
                                         << R"({"step":6,"tokens":60})"
                                         << "\n";
  run(4, 5, 5);
  EXPECT_EQ(metrics_steps(dir()), (Steps{4, 5}));
  EXPECT_EQ(metrics_steps(previous(1)), (Steps{5, 4, 6}));
}

TEST_F(ContinuedFolder, LinesAreFoundAcrossTheBlocksThatAreRead) {
  fs::create_directories(dir());
  std::string text;
  for (int step = 1; step <= 3000; ++step)
    text += nlohmann::json{{"step", step}, {"tokens", step}, {"text", std::string(static_cast<size_t>(step % 97), 'x')}}.dump() + "\n";
  text += nlohmann::json{{"step", 3001}, {"tokens", 1}, {"text", std::string(200'000, 'x')}}.dump() + "\n";
  for (const int64_t behind : {int64_t{0}, int64_t{1}, int64_t{1500}, int64_t{2999}, int64_t{3000}, int64_t{3001}}) {
    fs::remove_all(previous(1));
    std::ofstream(dir() / "metrics.jsonl") << text;
    run(behind, behind + 1, behind + 1);
    EXPECT_EQ(metrics_steps(dir()), counted(1, behind + 1)) << behind;
    if (behind < 3001) {
      EXPECT_EQ(metrics_steps(previous(1)), counted(behind + 1, 3001)) << behind;
    }
  }
}

TEST_F(ContinuedFolder, FreshSetsTheWholeOldRunAsideWithItsCheckpoints) {
  run({}, 1, 8, "old");
  const fs::path elsewhere = temp_.path("elsewhere");
  for (const fs::path& folder : {dir() / "checkpoints" / "step_8", dir() / "weights" / "step_4", elsewhere / "step_8"}) {
    fs::create_directories(folder);
    std::ofstream(folder / "index.json") << "x";
  }
  std::ofstream(dir() / "notes.txt") << "mine";
  {
    RunFolder folder(dir(), "new", true, 60, {},
                     {.goes_on = false, .set_aside = {dir() / "checkpoints/", dir() / "weights", elsewhere, dir() / "missing"}});
    folder.record(StepMetrics{.step = 1, .tokens = 10});
  }
  expect_steps(dir(), {1});
  expect_steps(previous(1), counted(1, 8));
  EXPECT_EQ(test::slurp((previous(1) / "config.yaml").string()), "old");
  for (const fs::path& file : {previous(1) / "checkpoints" / "step_8" / "index.json", previous(1) / "weights" / "step_4" / "index.json",
                               fs::path(temp_.path("previous_1")) / "elsewhere" / "step_8" / "index.json", dir() / "notes.txt"})
    EXPECT_TRUE(fs::exists(file)) << file;
  for (const fs::path& gone : {dir() / "checkpoints", dir() / "weights", elsewhere}) EXPECT_FALSE(fs::exists(gone)) << gone;
}

TEST_F(ContinuedFolder, ARewindSetsLaterCheckpointsAside) {
  run({}, 1, 8);
  for (const char* name : {"step_4", "step_8"}) fs::create_directories(dir() / "checkpoints" / name);
  RunFolder(dir(), "config", true, 60, {}, {.goes_on = true, .set_aside = {dir() / "checkpoints" / "step_8"}}).go_on(4);
  EXPECT_TRUE(fs::exists(dir() / "checkpoints" / "step_4"));
  EXPECT_FALSE(fs::exists(dir() / "checkpoints" / "step_8"));
  EXPECT_TRUE(fs::exists(previous(1) / "checkpoints" / "step_8"));
  expect_steps(previous(1), {5, 6, 7, 8});
}

}  // namespace
}  // namespace hlat
