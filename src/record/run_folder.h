// The folder a run leaves: config.yaml, metrics.jsonl, eval.jsonl (where tasks were evaluated), TensorBoard's events.out.*, log.txt.
// Nothing is ever overwritten: what an earlier run left is moved into previous_1, previous_2, ... first; events.jsonl (run_journal.h) stays
// and grows. One live run per folder, held by a lease (folder_lease.h). A run that goes on behind step S appends: metrics and TensorBoard's
// records past S, which it will make again, are set aside, and a config that changed is kept in previous_N. Whoever is killed while that
// happens does it again with the next start; nothing is lost or there twice. Creating a RunFolder is the first thing a run writes, so the
// caller validates before.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "record/folder_lease.h"
#include "record/metrics.h"
#include "record/previous_run.h"
#include "record/tensorboard.h"

namespace hlat {

struct FolderStart {
  bool goes_on = false;                               // the run that the folder has goes on: go_on() comes before record()
  std::function<void()> check = {};                   // under the lease and before anything is moved; throws where the caller's picture of
                                                      // the folder, which is older than the lease, is no longer right
  std::vector<std::filesystem::path> set_aside = {};  // checkpoints that are not of the run's past, moved before all else; missing ones
                                                      // are skipped (--fresh: all folders of them; a rewind: those of later steps)
};

// The steps that the folder had when a run was started in it.
struct PastSteps {
  std::optional<int64_t> reached = {};  // the last
  double progressed_at = 0;             // when it was recorded, seconds since 1970; 0: not known
  int64_t repeated = 0;                 // that are done again; known after go_on()
  double repeated_s = 0;                // what these had taken
};

class RunFolder {
 public:
  // Creates `dir` where needed. UsageError naming the path and the reason when that is impossible, or who is writing to it.
  RunFolder(const std::filesystem::path& dir, std::string_view config_yaml, bool tensorboard, double lease_s = 60,
            const FolderLease::Say& say = {}, const FolderStart& start = {});

  // Behind which step the run goes on: what is recorded of later ones is set aside. Nothing happens for a new run.
  void go_on(int64_t behind);
  // metrics.jsonl and events.out.*; Error when another process has taken over the folder. What a full disk does not take is held in memory
  // and written when it does.
  void record(const StepMetrics& m);
  // eval.jsonl and events.out.*. Where there is no room for it, the log has it alone.
  void record(const TaskMetrics& m);
  void record(const ToldAlarm& alarm);                             // events.out.*; likewise
  void finish();                                                   // FaultError: something is still held
  std::optional<int64_t> last_step() const { return last_step_; }  // in metrics.jsonl
  const PastSteps& past() const { return past_; }
  spdlog::logger& log() { return *log_; }
  const Log& shared_log() const { return log_; }
  FolderLease& lease() { return lease_; }
  const std::filesystem::path& dir() const { return dir_; }

 private:
  struct Held {
    StepMetrics metrics;
    double wall_time = 0;
    bool in_metrics = false;  // and not yet with TensorBoard
  };
  std::vector<std::string> make_room(std::string_view config_yaml, const FolderStart& start);  // returns what to tell the log
  void open_records();
  void write(Held& held);

  std::filesystem::path dir_;
  FolderLease lease_;
  bool tensorboard_, goes_on_;
  PastSteps past_;
  PreviousRun previous_;  // one for all that this start sets aside
  std::optional<int64_t> last_step_;
  std::vector<std::string> found_;  // of an earlier run, for the log
  Log log_;
  std::optional<MetricsWriter> metrics_, tasks_;
  std::optional<EventWriter> events_;
  std::deque<Held> held_;
};

}  // namespace hlat
