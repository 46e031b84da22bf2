// What a run's time was spent on, from its events: goodput is the time of steps that were kept over the wall time since the run began, and
// the rest is split by cause. Parts and goodput add up to the wall time exactly, because every moment is given to one of them:
//
//   launch/attempt -> process starts -> ready        start, of that load_s: load
//   ready -> last recorded step                      steps; of them those that a later attempt did again: repeated
//   last recorded step -> last progress of any rank  repeated: the step that was under way
//   last progress -> fault                           detection
//   fault -> teardown -> restart -> attempt          teardown, pause, wait for hosts, check
//   last recorded step -> last save -> end           saves, between
//
// Without a launcher the time from the last sign of a process to the next start is `down`. Time between the end of a finished run and its
// continuation with more steps is no part of it. A run that starts anew is another run, unless one launcher did both.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/events.h"
#include "record/step_times.h"

namespace hlat {

enum class Lost : uint8_t {
  detection,
  teardown,
  start,     // processes start and join, and what first steps take longer
  load,      // checkpoint and data
  repeated,  // steps that were done again
  saves,     // updates that waited for a save, and the last save
  slow,      // steps above kSlowFactor medians: what they are above the median
  between,   // between steps: validation, evaluation, records
  check,     // hlat check
  pause,     // before restarts
  wait,      // for hosts
  down,      // no process ran, and no launcher
  unknown,
};
inline constexpr size_t kLostCauses = 13;
std::string_view name_of(Lost cause);   // "detection"
std::string_view words_of(Lost cause);  // "finding faults"

struct Goodput {
  double wall_s = 0, useful_s = 0;
  std::array<double, kLostCauses> lost = {};  // by Lost
  int64_t restarts = 0;
  int64_t kept = 0, repeated = 0;  // steps
  double step_s = 0;               // median of those recorded; 0: none is

  double& of(Lost cause) { return lost[static_cast<size_t>(cause)]; }
  double of(Lost cause) const { return lost[static_cast<size_t>(cause)]; }
  double ratio() const { return wall_s > 0 ? useful_s / wall_s : 0; }
};

struct RunAttempt {
  int64_t number = 0;
  double begin = 0, ready = 0, end = 0;  // ready 0: it never was; end 0: it runs
  int ranks = 0;
  std::string mesh = {};
  std::vector<std::string> hosts = {};
  int64_t from = 0, reached = 0, kept = 0;  // steps
  std::string cause = {}, reason = {};      // of its end; the cause is a FailureCause, empty where no launcher judged
  int rank = -1;                            // that was named
  std::string host = {};
  std::optional<int> exit_code = {};
};

// What is known of a run.
struct RunRecord {
  std::vector<RunEvent> events;
  std::vector<RecordedStep> steps;  // of metrics.jsonl
  double recorded_at = 0;           // the latest of them; 0: not known
  double until = 0;                 // now, where it runs; else not used
  bool runs = false;
};

struct RunAccount {
  double begin = 0, until = 0;
  Goodput goodput;
  std::vector<RunAttempt> attempts;
  bool launched = false;  // by a launcher
};

RunAccount account(const RunRecord& record);
// Of a run folder as it is now. runs: some process works on it, by what the caller knows.
RunRecord read_run_record(const std::filesystem::path& folder, bool runs);

// "goodput 97.3% of 2h 05m, 3 restarts" and "lost: start 12s, steps repeated 40s, ..." with the largest first; what is under a thousandth
// of the wall time is left out.
std::string goodput_words(const Goodput& g);
std::string lost_words(const Goodput& g);

// While a run goes on: its past, and the steps of this process.
class LiveGoodput {
 public:
  LiveGoodput(const RunAccount& past, double now) : useful_(past.goodput.useful_s), wall_(past.goodput.wall_s), since_(now) {}
  // After each step; now: wall time; computed: it was not left out. Returns the goodput so far.
  double step(double seconds, double save_wait_s, double now, bool computed = true);

 private:
  double useful_, wall_, since_;
  std::vector<double> latest_;  // times of steps, a ring
  size_t next_ = 0;
};

}  // namespace hlat
