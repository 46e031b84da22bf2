// Lines of events.jsonl: who may write what, and a reader. Ranks write theirs through RunJournal, the launcher through LaunchJournal; both
// append whole lines to one file, so their order is that of their writing.
//
//   by ranks     start ready signal save save_failed fault skip spike non_finite alarm end
//   by launcher  launch attempt fault teardown restart skip straggler evict check wait stop finished; these have "by": "launch"
//
// A line that a reader does not know is kept with its kind and time; docs/exit-codes.md has the table of fields.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlat {

struct RunEvent {
  double time = 0;  // seconds since 1970
  std::string kind = {};
  std::string by = {};  // "launch"; empty: a rank
  int64_t step = 0;     // under way; of attempt, ready and restart: behind which it starts
  int64_t until = 0;    // launcher's fault that is an alarm: the step that found it; launcher's skip: the last one; 0: `step` alone
  std::string reason = {};
  std::optional<int> exit_code = {};
  int rank = 0, ranks = 0;  // who tells it, of how many; of a launcher's event: whom it is about, -1: nobody
  std::string host = {};
  int64_t pid = 0;
  std::optional<int64_t> saved = {};    // newest checkpoint
  std::optional<int64_t> reached = {};  // start: last step that was recorded before it
  double progressed_at = 0;             // start: when that was; fault: when a rank last got on. 0: not known
  double seconds = 0;                   // that it took: start, ready: since the process began; teardown, check, wait
  int64_t total = 0;                    // ready: steps of the run; 0: not known
  double load_s = 0;                    // ready: reading checkpoint and data, part of the start
  int64_t repeated = 0;                 // ready: steps that are done again,
  double repeated_s = 0;                //   and what they had taken
  int64_t attempt = 0;                  // 1 is the first; 0: without a launcher
  std::string cause = {};               // fault: its kind (FailureCause), empty: told by a rank; launch: kFreshLaunch; stop: kStopBySignal
  double pause_s = 0;                   // restart: before the next attempt
  std::string rule = {};                // alarm: which
  std::string mesh = {};                // attempt: "tp 2, pp 1, dp 4"
  std::vector<std::string> hosts = {};  // attempt
};

inline constexpr const char* kFreshLaunch = "fresh";    // the launcher was asked to start the run anew
inline constexpr const char* kStopBySignal = "signal";  // the launcher was asked to end

struct EventsRead {
  std::vector<RunEvent> events;
  std::vector<std::string> problems;  // "line 3 is no JSON object", of whole lines; the part of a line at the end is none
};

EventsRead read_events(const std::filesystem::path& folder);  // no file: no events

// Appends one line. False: the disk did not take it, and the file is as it was. Never throws.
bool append_event(const std::filesystem::path& folder, const std::string& line) noexcept;

std::string utc_text(double time);              // "2026-11-16T04:45:27.123Z"
double time_of(std::string_view utc) noexcept;  // 0: it is no such text
double wall_time();                             // now, seconds since 1970

// What hlat launch tells. No method throws: lines that a full disk does not take are held and tried again with the next one.
// The folder is made where it is missing. From one thread.
class LaunchJournal {
 public:
  LaunchJournal(std::filesystem::path folder, std::string version);
  ~LaunchJournal();  // tries once more
  LaunchJournal(const LaunchJournal&) = delete;
  LaunchJournal& operator=(const LaunchJournal&) = delete;

  void launch(const std::string& reason, bool fresh = false);  // the launcher begins, or takes over; fresh: the run is started anew
  struct Attempt {
    int64_t number = 1;
    int ranks = 1;
    std::string mesh = {};
    std::vector<std::string> hosts = {};
    int64_t from = 0;  // the newest checkpoint; 0: the beginning
  };
  void attempt(const Attempt& a);  // just before the ranks are started; later events are of this attempt
  struct Fault {
    std::string kind = {};  // name_of(FailureCause)
    int rank = -1;
    std::string host = {};
    int64_t step = 0;
    int64_t until = 0;  // alarm: the step that found it; 0: not known
    std::string reason = {};
    double progressed_at = 0;  // wall time at which a rank last got on
    int exit_code = 0;         // 0: none
    int64_t saved = 0;         // newest checkpoint; 0: none
  };
  void fault(const Fault& f);                                             // as soon as it is found
  void teardown(double seconds, const std::string& reason);               // when nothing of the attempt is left
  void restart(double pause_s, int64_t from, const std::string& reason);  // before the pause
  void skip(int64_t first, int64_t last, const std::string& reason);      // the batches of these steps, from now on
  void straggler(int rank, const std::string& host, int64_t step, const std::string& reason);
  void evict(const std::string& host, const std::string& reason);
  void check(double seconds, bool passed, const std::string& reason);  // hlat check, when it has ended
  void wait(double seconds, const std::string& reason);                // for hosts, when it is over
  void stop(int exit_code, int64_t step, const std::string& reason, bool by_signal = false);
  void finished(int64_t step);

  size_t held() const { return held_.size(); }

 private:
  void tell(RunEvent event);
  void write();

  std::filesystem::path folder_;
  std::string version_;
  int64_t attempt_ = 0;
  std::vector<std::string> held_;
};

}  // namespace hlat
