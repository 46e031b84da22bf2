// The order of a study's runs, what their ends come to, limits and signals, with processes that are made up.
#include "study/runner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "config/print.h"
#include "record/folder_lease.h"
#include "study/study_view.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

class StudyRunning : public testing::Test {
 protected:
  // Ends after some looks, with an exit code and the events that go with it.
  struct Made : RunProcess {
    Made(StudyRunning* test_, const PlannedRun& run_, int code_, double until_, double lingers_)
        : test(test_), run(run_), code(code_), until(until_), lingers(lingers_) {
      ++test->live;
      test->most_live = std::max(test->most_live, test->live);
    }
    bool running() override {
      if (over) return false;
      if (test->time < until && (!asked || test->hangs) && !ended) return true;
      if (!recorded && !leaves_folder) test->record(run, asked ? 130 : code);
      if (!recorded) until = test->time;
      recorded = true;
      if (test->time < until + lingers && !ended) return true;
      over = true;
      --test->live;
      return false;
    }
    int status() override { return ended ? 137 : code; }
    void ask_to_end() override { asked = true; }
    void end() override {
      if (!recorded) asked = true;
      ended = true;
      running();
    }
    bool only_starter() override { return recorded && !test->saves; }
    StudyRunning* test;
    const PlannedRun& run;
    int code;
    double until, lingers;  // the latter: as mpirun does behind the end of its ranks
    bool asked = false, ended = false, over = false, recorded = false;
    bool leaves_folder = false;  // it ends before it takes its folder
  };

  PlannedRun plan(const std::string& name) const {
    PlannedRun p{.run = {.name = name, .row = name}, .config = {}};
    p.config.run.dir = dir_.path(name);
    return p;
  }

  static void record(const PlannedRun& run, int code) {
    const fs::path folder = run.config.run.dir;
    fs::create_directories(folder);
    std::ofstream(folder / "config.yaml") << to_yaml(run.config);
    std::ofstream(folder / "output.txt") << "first words\nlast words\n";
    std::ofstream(folder / "events.jsonl", std::ios::app)
        << "{\"time\":\"2026-11-16T04:45:27.000Z\",\"kind\":\"start\",\"step\":0,\"reason\":\"\",\"exit_code\":null}\n"
        << "{\"time\":\"2026-11-16T04:45:28.000Z\",\"kind\":\"end\",\"step\":3,\"reason\":\"the loss is nan\",\"exit_code\":" << code
        << "}\n";
  }

  StudyEnd run(const std::vector<PlannedRun>& runs, const StudyOptions& options = {}) {
    StudyWorld world;
    world.start = [&](const PlannedRun& p, bool fresh) {
      if (broken.contains(p.run.name)) throw FaultError(broken[p.run.name]);
      started.push_back(p.run.name + (fresh ? " fresh" : ""));
      auto made = std::make_unique<Made>(this, p, codes.contains(p.run.name) ? codes[p.run.name] : 0, time + 10, lingers);
      made->leaves_folder = refused.contains(p.run.name);
      return made;
    };
    world.now = [&] { return time; };
    world.pause = [&] {
      time += 1;
      if (on_pause) on_pause();
    };
    world.asked = [&] { return signal_at > 0 && time >= signal_at ? SIGINT : 0; };
    world.asked_twice = [&] { return signal_at > 0 && time >= signal_at + 2; };
    world.say = [&](const std::string& text) { said += text + "\n"; };
    world.show = [](const std::vector<RunShown>&, const std::string&) {};
    return run_study(runs, options, world);
  }

  TempDir dir_;
  std::map<std::string, int> codes;
  std::map<std::string, std::string> broken;  // why they cannot be started
  std::set<std::string> refused;              // they end before they take their folder
  std::vector<std::string> started;
  std::string said;
  double time = 0, signal_at = 0, lingers = 0;
  std::function<void()> on_pause;
  int live = 0, most_live = 0;
  bool hangs = false;  // runs that are asked to end do not
  bool saves = false;  // behind their recorded end
};

using Names = std::vector<std::string>;

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

// Saves can hang: who waits for them can still end the study.
TEST_F(StudyRunning, SignalsAreHeardWhenTheTimeIsOver) {
  hangs = true;
  signal_at = 6;
  const StudyEnd end = run({plan("a")}, {.stop_s = 3});
  EXPECT_EQ(end.signal, SIGINT);
  EXPECT_LT(time, 10) << "the second one ends the run, which would have gone on until then";
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

TEST_F(StudyRunning, FoldersThatCannotBeReadAreFailuresOfTheirRunsAlone) {
  const std::vector<PlannedRun> runs = {plan("file"), plan("metrics"), plan("events"), plan("good")};
  std::ofstream(runs[0].config.run.dir) << "no folder";
  record(runs[1], 0), record(runs[2], 0);
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

// What comes after the last save may be left: hlat train makes it, and records the end.
TEST(StudyStanding, ARunIsFinishedWhenItHasRecordedThat) {
  const std::string start = R"("kind":"start","step":0,"reason":"started")", save = R"("kind":"save","step":4,"saved":4)";
  const auto end = [](int code) { return fmt::format(R"("kind":"end","step":4,"reason":"r","exit_code":{})", code); };
  const std::vector<std::pair<std::vector<std::string>, Standing>> rows = {{{start, save, end(0)}, Standing::finished},
                                                                           {{start, save, end(5)}, Standing::numbers},
                                                                           {{start, save}, Standing::cut_off},
                                                                           {{start, save, end(130)}, Standing::cut_off},
                                                                           {{start, save, end(4)}, Standing::cut_off},
                                                                           {{start, save, end(4), start, end(0)}, Standing::finished},
                                                                           {{start, save, end(0), start}, Standing::cut_off}};
  for (const auto& [lines, standing] : rows) {
    const TempDir dir;
    PlannedRun run{.run = {.name = "a", .row = "a"}, .config = {}};
    run.config.run.dir = dir.path("a"), run.config.train.steps = 4;
    std::string events, metrics;
    for (const std::string& e : lines) events += R"({"time":"2026-11-16T04:45:27.000Z",)" + e + "}\n";
    for (int step = 1; step <= 4; ++step) metrics += fmt::format("{{\"step\":{0},\"tokens\":{0},\"loss\":2}}\n", step);
    fs::create_directories(dir.path("a"));
    dir.write("a/events.jsonl", events), dir.write("a/metrics.jsonl", metrics);
    EXPECT_EQ(name_of(standing_of(run).standing), name_of(standing)) << events;
  }
}

TEST(StudyContradictions, WhatARunStartsFromIsOne) {
  Config recorded, planned;
  planned.checkpoint.every = 7, planned.checkpoint.dir = "elsewhere";
  EXPECT_TRUE(contradictions(recorded, planned).empty());
  planned.checkpoint.init_from = "weights";
  ASSERT_EQ(contradictions(recorded, planned).size(), 1u);
  EXPECT_EQ(contradictions(recorded, planned)[0].key, "checkpoint.init_from");
}

TEST(StudyContradictions, WhatTheStartOfARunFindsOutIsNone) {
  Config planned;
  planned.train.micro_batch = 0, planned.model.vocab = 0, planned.parallel.dp = 0, planned.train.steps = 0;  // auto
  Config recorded = planned;
  recorded.train.micro_batch = 4, recorded.model.vocab = 640, recorded.parallel.dp = 2, recorded.train.steps = 10;
  EXPECT_TRUE(contradictions(recorded, planned).empty());
  planned.train.micro_batch = 2;
  ASSERT_EQ(contradictions(recorded, planned).size(), 1u);
  EXPECT_EQ(contradictions(recorded, planned)[0].key, "train.micro_batch");
}

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
