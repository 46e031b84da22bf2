// Folders that a study finds: held by others, of another config, unreadable; with processes that are made up.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "record/folder_lease.h"
#include "study/made_runs.h"
#include "support/message_of.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

// A folder in the place of metrics.jsonl: it is opened, and reading it fails.
TEST_F(StudyRunning, RecordsThatCannotBeReadAreAFailureOfTheirRunAlone) {
  const std::vector<PlannedRun> runs = {plan("a"), plan("b"), plan("c")};
  const fs::path metrics = fs::path(runs[0].config.run.dir) / "metrics.jsonl";
  on_pause = [&] {
    if (time == 5) fs::create_directories(metrics);
  };
  const StudyEnd end = run(runs, {.at_once = 2});
  EXPECT_EQ(end.failed, 1u);
  EXPECT_EQ(end.finished, 2u);
  EXPECT_NE(said.find("a has ended, and what it recorded cannot be read: " + metrics.string() + " is no file"), std::string::npos) << said;
}

TEST_F(StudyRunning, RecordsOfAnotherProcessThatCannotBeReadForAMomentAreReadAgain) {
  const std::vector<PlannedRun> runs = {plan("held"), plan("b")};
  const fs::path folder = runs[0].config.run.dir;
  fs::create_directories(folder);
  std::ofstream(folder / "events.jsonl")
      << "{\"time\":\"2026-11-16T04:45:27.000Z\",\"kind\":\"start\",\"step\":0,\"reason\":\"\",\"exit_code\":null}\n";
  std::optional<FolderLease> lease;
  lease.emplace(folder, 60.0);
  bool cut = false;
  on_pause = [&] {
    if (time == 1) fs::create_directories(folder / "metrics.jsonl"), cut = true;
    if (time == 20 && cut) fs::remove(folder / "metrics.jsonl");
    if (time > 30) lease.reset();
  };
  EXPECT_EQ(run(runs).finished, 2u) << said;
  EXPECT_EQ(started, (Names{"b", "held"}));
}

TEST_F(StudyRunning, FoldersThatCannotBeReadAreFailuresOfTheirRunsAlone) {
  const std::vector<PlannedRun> runs = {plan("file"), plan("metrics"), plan("events"), plan("good")};
  std::ofstream(runs[0].config.run.dir) << "no folder";
  record(runs[1], 0), record(runs[2], 0);
  fs::remove(fs::path(runs[1].config.run.dir) / "metrics.jsonl");
  fs::create_directories(fs::path(runs[1].config.run.dir) / "metrics.jsonl");
  fs::remove(fs::path(runs[2].config.run.dir) / "events.jsonl");
  fs::create_directories(fs::path(runs[2].config.run.dir) / "events.jsonl");
  for (const PlannedRun& p : {runs[0], runs[1], runs[2]}) EXPECT_EQ(name_of(standing_of(p).standing), "unreadable") << p.run.name;
  const StudyEnd end = run(runs);
  EXPECT_EQ(started, Names{"good"});
  EXPECT_EQ(end.failed, 3u);
  EXPECT_EQ(end.finished, 1u);
  EXPECT_NE(said.find("file cannot be started: " + runs[0].config.run.dir + " is no folder"), std::string::npos) << said;
  EXPECT_NE(said.find("metrics cannot be started: " + runs[1].config.run.dir + "/metrics.jsonl is no file"), std::string::npos) << said;
  EXPECT_LT(time, 20) << "nothing is waited for";
}

TEST_F(StudyRunning, ARunOfAnotherProcessIsWaitedForAndNotForEver) {
  const std::vector<PlannedRun> runs = {plan("held"), plan("b")};
  fs::create_directories(runs[0].config.run.dir);
  std::ofstream(fs::path(runs[0].config.run.dir) / "events.jsonl")
      << "{\"time\":\"2026-11-16T04:45:27.000Z\",\"kind\":\"start\",\"step\":0,\"reason\":\"\",\"exit_code\":null}\n";
  std::optional<FolderLease> lease;
  lease.emplace(runs[0].config.run.dir, 60.0);
  const StudyEnd never = run(runs);
  EXPECT_EQ(started, Names{"b"});
  EXPECT_EQ(never.failed, 1u);
  EXPECT_NE(said.find("held: another process works on"), std::string::npos) << said;
  started.clear();
  time = 0;
  on_pause = [&] {
    if (time > 30) lease.reset();
  };
  EXPECT_EQ(run(runs).finished, 2u);
  EXPECT_EQ(started, Names{"held"});
}

// Between two looks at a held run another one of this study may take hours.
TEST_F(StudyRunning, TimeThatOwnRunsTakeIsNoneThatAnotherProcessWasWaitedFor) {
  std::vector<PlannedRun> runs = {plan("held"), plan("b")};
  fs::create_directories(runs[0].config.run.dir);
  std::ofstream(fs::path(runs[0].config.run.dir) / "events.jsonl")
      << "{\"time\":\"2026-11-16T04:45:27.000Z\",\"kind\":\"start\",\"step\":0,\"reason\":\"\",\"exit_code\":null}\n";
  std::optional<FolderLease> lease;
  lease.emplace(runs[0].config.run.dir, 60.0);
  on_pause = [&] {
    if (started == Names{"b"} && live == 1) time += 100;  // b takes 1000 s
    if (live == 0 && time > 150) lease.reset();
  };
  EXPECT_EQ(run(runs).finished, 2u) << said;
  EXPECT_EQ(started, (Names{"b", "held"}));
}

// Nobody knows what such a run was; --fresh sets it aside.
TEST_F(StudyRunning, AConfigThatCannotBeReadIsNoResult) {
  const std::vector<PlannedRun> runs = {plan("other"), plan("folder"), plan("good")};
  for (const PlannedRun& p : runs) record(p, 0);
  const auto config_of = [](const PlannedRun& p) { return fs::path(p.config.run.dir) / "config.yaml"; };
  std::ofstream(config_of(runs[0])) << "train: {step_count: 5}\n";
  fs::remove(config_of(runs[1]));
  fs::create_directories(config_of(runs[1]));
  const StudyEnd end = run(runs);
  EXPECT_EQ(started, Names{}) << said;
  EXPECT_EQ(end.finished, 1u);
  EXPECT_EQ(end.failed, 2u);
  EXPECT_NE(said.find("other cannot be started: the config of its run is not known: " + config_of(runs[0]).string() + ":1: "),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("--fresh sets the run aside"), std::string::npos) << said;
  EXPECT_EQ(name_of(standing_of(runs[1]).standing), "unreadable");
  refused = {"other"}, codes["other"] = 2;
  fs::remove(config_of(runs[1]));  // as setting it aside does
  const StudyEnd fresh = run(runs, {.fresh = true});
  EXPECT_EQ(started, (Names{"other fresh", "folder fresh"})) << said;
  EXPECT_EQ(fresh.finished, 2u);
  EXPECT_EQ(fresh.refused, 1u);
  EXPECT_NE(said.find("other failed with exit code 2"), std::string::npos) << said;
}

// Two studies of one folder: what the other one has done, or does, is not done again.
TEST_F(StudyRunning, WhatAnotherStudyEndsMeanwhileIsNotStarted) {
  std::vector<PlannedRun> runs = {plan("a"), plan("b"), plan("c")};
  on_pause = [&] {
    if (time != 5) return;
    record(runs[1], 0);
    PlannedRun other = runs[2];
    other.config.optim.lr = 7e-3;
    record(other, 0);
  };
  const StudyEnd end = run(runs);
  EXPECT_EQ(started, Names{"a"});
  EXPECT_EQ(end.finished, 2u);
  EXPECT_EQ(end.failed, 1u);
  EXPECT_NE(said.find("c cannot be started any more: its folder has a run (finished) of another config: optim.lr 0.007 -> 0.0003"),
            std::string::npos)
      << said;
}

TEST_F(StudyRunning, ARunThatAnotherStudyHasTakenIsWaitedFor) {
  const std::vector<PlannedRun> runs = {plan("a")};
  refused = {"a"}, codes = {{"a", 2}};
  std::optional<FolderLease> lease;
  on_pause = [&] {
    const fs::path folder = runs[0].config.run.dir;
    if (time == 5) {
      fs::create_directories(folder);
      std::ofstream(folder / "events.jsonl") << R"({"time":"2026-11-16T04:45:27.000Z","kind":"start","step":0})"
                                             << "\n";
      lease.emplace(folder, 60.0);
    }
    if (time == 60) lease.reset(), record(runs[0], 0);
  };
  const StudyEnd end = run(runs);
  EXPECT_EQ(end.finished, 1u) << said;
  EXPECT_EQ(started, Names{"a"});
  EXPECT_NE(said.find("a was started by another process meanwhile; waiting for it"), std::string::npos) << said;
}

TEST_F(StudyRunning, AFolderOfAnotherConfigIsRefusedOrSetAside) {
  std::vector<PlannedRun> runs = {plan("a"), plan("b")};
  run(runs);
  runs[0].config.optim.lr = 7e-3;
  runs[1].config.device.threads = 7;  // decides nothing of a result
  started.clear();
  const std::string told = message_of([&] { run(runs); });
  EXPECT_NE(told.find("a: its folder has a run (finished) of another config: optim.lr 0.0003 -> 0.007"), std::string::npos) << told;
  EXPECT_EQ(told.find("b: "), std::string::npos) << told;
  EXPECT_TRUE(started.empty());
  run(runs, {.fresh = true});
  EXPECT_EQ(started, Names{"a fresh"});
}

// hlat train would go on with the checkpoints.
TEST_F(StudyRunning, CheckpointsOfAnotherRunAreNotGoneOnFrom) {
  std::vector<PlannedRun> runs = {plan("a"), plan("b")};
  for (PlannedRun& p : runs) p.config.checkpoint.dir = dir_.path("saves/" + p.run.name);
  fs::create_directories(dir_.path("saves/a/step_4"));
  std::ofstream(dir_.path("saves/a/step_4/index.json")) << "{}";
  const std::string told = message_of([&] { run(runs); });
  EXPECT_NE(told.find("a: " + dir_.path("saves/a") + " has checkpoints of another run"), std::string::npos) << told;
  EXPECT_EQ(told.find("b: "), std::string::npos) << told;
  EXPECT_EQ(run(runs, {.fresh = true}).finished, 2u);
  EXPECT_EQ(started, (Names{"a fresh", "b"}));
  EXPECT_EQ(run(runs).finished, 2u) << "now they are its own";
}

TEST_F(StudyRunning, TheRunThatAFolderHadIsNoResultOfTheOneThatWasToTakeItsPlace) {
  std::vector<PlannedRun> runs = {plan("a"), plan("b")};
  codes["b"] = 5;
  run(runs);
  for (PlannedRun& p : runs) p.config.optim.lr = 7e-3;
  refused = {"a", "b"};
  codes = {{"a", 2}, {"b", 2}};
  const StudyEnd end = run(runs, {.fresh = true});
  EXPECT_EQ(end.failed, 2u) << said;
  EXPECT_EQ(end.finished + end.numbers, 0u) << said;
  EXPECT_NE(said.find("a failed with exit code 2"), std::string::npos) << said;
  time = 0, signal_at = 3;
  const StudyEnd asked = run(runs, {.fresh = true});
  EXPECT_EQ(asked.left, 2u);
  EXPECT_NE(said.find("a ended before its first step; its folder still has a run of another config"), std::string::npos) << said;
}

}  // namespace
}  // namespace hlat::test
