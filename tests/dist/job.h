// A job of several ranks as a user starts it: mpirun and the real binary, with the means to look at its processes and to
// harm them. Processes are found by a variable that only this job has in its environment.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/run_binary.h"
#include "support/temp_dir.h"

namespace hlat::test {

class Job {
 public:
  using Words = std::vector<std::string>;

  // Runs in a fresh folder, dir(), with tiny.yaml in it. `launcher` are more words for mpirun, `before` those of a program that
  // starts it; 0 ranks: no mpirun.
  Job(int ranks, const Words& args, const Words& launcher = {}, const std::map<std::string, std::string>& variables = {},
      const Words& before = {});
  ~Job();  // ends what is left
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const TempDir& dir() const { return dir_; }
  pid_t pid() const { return pid_; }    // of mpirun; without ranks, of hlat
  std::map<int, pid_t> ranks() const;   // the living processes of hlat
  void await_step(int64_t step) const;  // until the metrics of run folder "run" hold it; throws after a minute
  void terminate() const;               // asks what was started, mpirun or the program before it, to end
  RunResult wait(double limit_s = 60);  // throws when the job does not end in time
  std::vector<nlohmann::json> metrics() const { return lines("metrics.jsonl"); }  // of run folder "run"
  std::vector<nlohmann::json> events() const { return lines("events.jsonl"); }
  std::string log() const;

 private:
  std::vector<nlohmann::json> lines(const std::string& file) const;  // whole ones

  TempDir dir_;
  pid_t pid_ = -1;  // of mpirun; -1: it has ended
};

// Whether it becomes true within so many seconds; asks every 20 ms.
bool within(double limit_s, const std::function<bool()>& done);

// train --config tiny.yaml run.dir=run and more words.
Job::Words tiny_run(const Job::Words& more = {});

// What the launcher told of a kind.
std::vector<nlohmann::json> launch_events(const Job& job, const std::string& kind);

}  // namespace hlat::test
