// A run that saves, in a folder that outlives its processes: started again and again with the same words, as a scheduler does. Its
// processes may run under tests/preload/io_faults.cc, which makes the file system of the checkpoints fail them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/job.h"

namespace hlat::test {

// What goes wrong with which of the calls on the files of checkpoints; the names are those of io_faults.cc.
struct IoFault {
  std::string action, call;
  int at = 1;             // the first that it meets
  int calls = 0;          // how many; 0: all that follow
  int ms = 0;             // of a sleep
  int rank = -1;          // -1: every one
  std::string path = {};  // part of it; empty: all of checkpoints

  std::map<std::string, std::string> variables() const;
};

class SavingRun {
 public:
  using Words = Job::Words;

  // 0 ranks: no mpirun. `more` are words of the command.
  explicit SavingRun(int ranks, const Words& more = {});

  std::unique_ptr<Job> start(const std::optional<IoFault>& fault = {}, const Words& launcher = {}) const;
  RunResult run(const std::optional<IoFault>& fault = {}) const;  // until it ends

  std::string folder() const { return dir_.path("run"); }
  std::string checkpoints() const { return dir_.path("run/checkpoints"); }
  std::vector<int64_t> saved() const;  // steps
  int64_t latest() const;              // of them; 0: none
  std::string content(int64_t step) const;
  std::vector<nlohmann::json> metrics() const { return lines("metrics.jsonl"); }
  std::vector<nlohmann::json> events(const std::string& kind) const;
  std::string log() const;
  std::vector<double> losses() const;  // of all steps; each must be there once, in order
  void await_step(int64_t step) const;
  bool struck() const;  // a fault that met a call since the latest start

 private:
  std::vector<nlohmann::json> lines(const std::string& file) const;

  TempDir dir_;
  int ranks_;
  Words more_;
};

// Ends all processes of a job at once, as a machine that loses power does.
void kill_all(const Job& job);

}  // namespace hlat::test
