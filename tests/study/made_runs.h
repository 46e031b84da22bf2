// Runs of a study whose processes are made up: they end after ten looks, with exit codes and events of choice. Time is what the test says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/print.h"
#include "study/runner.h"
#include "support/temp_dir.h"

namespace hlat::test {

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
      if (asked && test->time < until && !test->fails_when_asked) code = 130;
      if (!recorded && !leaves_folder) test->record(run, code);
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
    const std::filesystem::path folder = run.config.run.dir;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.yaml") << to_yaml(run.config);
    std::ofstream(folder / "metrics.jsonl") << "{\"step\":3,\"tokens\":3,\"loss\":2}\n";
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
  bool hangs = false;             // runs that are asked to end do not
  bool saves = false;             // behind their recorded end
  bool fails_when_asked = false;  // with their codes, as where the last save is not possible
};

using Names = std::vector<std::string>;

}  // namespace hlat::test
