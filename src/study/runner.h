// Runs the runs of a study, one after the other or several at once, each as a process of its own. What a process is comes from outside
// (StudyWorld), so that order, ends and signals can be tested without one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "study/grid.h"
#include "study/standing.h"

namespace hlat {

class RunProcess {
 public:
  virtual ~RunProcess() = default;
  virtual bool running() = 0;
  virtual int status() = 0;       // once it has ended: its exit code, or 128 + signal
  virtual void ask_to_end() = 0;  // to save and end
  virtual void end() = 0;         // at once
  // Its ranks are gone, and what started them is not: mpirun waits for ranks that failed, also when there are none any more.
  virtual bool only_starter() { return false; }
};

// What is shown of a run that is under way.
struct RunShown {
  std::string name;
  int64_t step = 0, steps = 0;  // steps 0: not known yet
  double loss = 0;              // NaN: not known
  double tokens_per_s = 0;      // 0: not known
  double since_s = 0;           // that it has run
  double left_s = -1;           // below 0: not known
};

struct StudyWorld {
  std::function<std::unique_ptr<RunProcess>(const PlannedRun&, bool fresh)> start;  // Error: it cannot be
  std::function<double()> now;                                                      // seconds
  std::function<void()> pause;                                                      // until it is worth while to look again
  std::function<int()> asked;                                                       // the signal that asks the study to end; 0: none
  std::function<bool()> asked_twice;                                                // and at once
  std::function<void(const std::string&)> say;                                      // a line that stays
  std::function<void(const std::vector<RunShown>&, const std::string& done)> show;
};

struct StudyOptions {
  int64_t at_once = 1;
  double limit_s = 0;  // no run is started after so many seconds; 0: no limit
  double stop_s = 0;   // runs are asked to end after so many seconds; 0: no limit
  bool fresh = false;  // runs that contradict the study are set aside and started again
};

struct StudyEnd {
  size_t finished = 0, numbers = 0, failed = 0, left = 0;  // runs; left: not begun, or ended before their last step
  size_t refused = 0;                                      // of those that failed: for what a user must change
  int signal = 0;                                          // that ended it
  std::string words() const;                               // "12 of 15 runs finished, ..."
};

// UsageError, before anything is started, when a run's folder contradicts the study and options.fresh is not set.
StudyEnd run_study(const std::vector<PlannedRun>& runs, const StudyOptions& options, const StudyWorld& world);

// The last lines of a text file, of some KiB at most.
std::string last_lines(const std::filesystem::path& file, size_t lines);

inline constexpr const char* kRunOutput = "output.txt";     // in a run's folder: what hlat train told
inline constexpr const char* kRunSummary = "summary.json";  // and its summary
inline constexpr const char* kRunConfig = "given.yaml";     // and the config that it was started with

}  // namespace hlat
