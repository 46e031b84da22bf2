// events.jsonl and what log.txt says about it: every start, signal, fault and end of a run is one JSON object and one line of the log.
// The file is appended to over restarts. Rank 0 keeps the journal; another rank joins it when it must tell what rank 0 cannot: its own
// failure, or that rank 0 is gone. The first end after a start is its end, whoever told it: later events are told by log.txt alone.
// From any thread.
//
//   time       UTC, ISO 8601              rank, ranks   who tells it, of how many
//   kind       start|ready|signal|save|   host, pid     and where that is
//              save_failed|fault|end
//   step       under way; 0: none yet     config        hash of the resolved config, for runs that are the same
//   reason     in words                   version       of hlat
//   exit_code  of an end, else null       missing       ranks that are gone, of a fault; else not there
//              skip|spike|non_finite|alarm: of a loss that is off (train/loss_event.h), with fields of their own
//   saved      step of the latest checkpoint, of a save; not there: the run has none
//   seconds    since the process began, of start and ready
//   reached, progressed_at   of a start: the last step that was recorded before, and when
//   total, load_s, repeated, repeated_s   of ready, before the first step: steps of the run; seconds of loading; steps that are done
//              again, and what they had taken
//
// The launcher's lines, and how all are read: record/events.h.
#pragma once

#include <filesystem>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"

namespace hlat {

struct JournalOrigin {
  int rank = 0, ranks = 1;
  std::string config;  // its hash
  std::string version;
};

// What a start tells of itself and of the records that it found.
struct StartFacts {
  double seconds = 0;  // since the process began
  std::optional<int64_t> reached = {};
  double progressed_at = 0;  // seconds since 1970; 0: not known
};

struct ReadyFacts {
  int64_t total = 0;  // steps of the run
  double seconds = 0, load_s = 0;
  int64_t repeated = 0;
  double repeated_s = 0;
};

class RunJournal {
 public:
  explicit RunJournal(JournalOrigin origin) : origin_(std::move(origin)) {}

  // Rank 0, when the folder is its own: writes the start. FaultError when that is impossible.
  // token: of its lease; where the lock has another's the folder is lost, and nothing is written any more.
  // anew: the run does not go on with one that the folder has.
  void open(const std::filesystem::path& folder, uint64_t token, Log log, bool anew = true, const StartFacts& facts = {});
  // Another rank: it writes only where the folder's lock has this token, which is that of rank 0.
  void join(const std::filesystem::path& folder, uint64_t token);

  void ready(int64_t behind, const ReadyFacts& facts);  // the first step begins
  void signal(int64_t step, const std::string& reason);
  void save(int64_t step, const std::string& reason, bool failed, int64_t saved);  // saved: 0: there is no checkpoint
  void fault(int64_t step, const std::string& reason, const std::vector<int>& missing);
  // Rank 0, of any other kind, with more fields.
  void note(const char* kind, int64_t step, const std::string& reason, const nlohmann::ordered_json& fields);
  void end(int64_t step, const std::string& reason, int exit_code);  // only the first of a rank is told

 private:
  struct Event {
    const char* kind;
    int64_t step = 0;
    const std::string& reason;
    std::optional<int> exit_code = {};
    std::vector<int> missing = {};
    int64_t saved = 0;
    std::optional<StartFacts> start = {};
    std::optional<ReadyFacts> ready = {};
    bool routine = false;  // comes often, from rank 0 alone: whether the run is over is not looked up
    const nlohmann::ordered_json* fields = nullptr;
  };
  void write(const Event& event);
  void log(const Event& event);
  bool is_own() const;
  void try_write(const Event& event);

  JournalOrigin origin_;
  std::mutex mutex_;
  std::filesystem::path folder_;  // empty: there is none yet
  uint64_t token_ = 0;            // of rank 0's lease
  Log log_;                       // on rank 0
  bool ended_ = false;
};

// The step of the latest checkpoint that the run of this folder has recorded since it began anew; 0: none.
int64_t recorded_save(const std::filesystem::path& folder);

// Whether the latest process that worked on the run has recorded that it is finished.
bool recorded_finish(const std::filesystem::path& folder);

}  // namespace hlat
