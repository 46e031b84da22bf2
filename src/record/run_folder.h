// The folder a run leaves: config.yaml, metrics.jsonl, TensorBoard's events.out.*, log.txt. Nothing is ever overwritten: what an earlier
// run left is moved into previous_1, previous_2, ... first; events.jsonl (run_journal.h) stays and grows. One live run per folder, held by
// a lease (folder_lease.h).
// A run that goes on behind step S appends: metrics and TensorBoard's records past S, which it will make again, are set aside, and a config
// that changed is kept in previous_N. Whoever is killed while that happens does it again with the next start; nothing is lost or there
// twice. Creating a RunFolder is the first thing a run writes, so the caller validates before.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "record/folder_lease.h"
#include "record/metrics.h"
#include "record/tensorboard.h"

namespace hlat {

struct FolderStart {
  std::optional<int64_t> behind = {};                 // the run goes on behind this step; none: a new run
  std::vector<std::filesystem::path> set_aside = {};  // checkpoints that are not of the run's past, moved before all else; missing ones
                                                      // are skipped (--fresh: all folders of them; a rewind: those of later steps)
};

class RunFolder {
 public:
  // Creates `dir` where needed. UsageError naming the path and the reason when that is impossible, or who is writing to it.
  RunFolder(const std::filesystem::path& dir, std::string_view config_yaml, bool tensorboard, double lease_s = 60,
            const FolderLease::Say& say = {}, const FolderStart& start = {});

  void record(const StepMetrics& m);  // metrics.jsonl and events.out.*; Error when another process has taken over the folder
  std::optional<int64_t> last_step() const { return last_step_; }  // in metrics.jsonl
  spdlog::logger& log() { return *log_; }
  const Log& shared_log() const { return log_; }
  FolderLease& lease() { return lease_; }
  const std::filesystem::path& dir() const { return dir_; }

 private:
  std::vector<std::string> make_room(std::string_view config_yaml, const FolderStart& start);  // returns what to tell the log

  std::filesystem::path dir_;
  FolderLease lease_;
  std::optional<int64_t> last_step_;
  std::vector<std::string> found_;  // of an earlier run, for the log
  Log log_;
  MetricsWriter metrics_;
  std::optional<EventWriter> events_;
};

}  // namespace hlat
