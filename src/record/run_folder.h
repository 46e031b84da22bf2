// The folder a run leaves: config.yaml, metrics.jsonl, TensorBoard's events.out.*, log.txt. Nothing is ever overwritten: files of an
// earlier run are moved into previous_1, previous_2, ... first; events.jsonl (run_journal.h) stays and grows. One live run per folder,
// held by a lease (folder_lease.h).
// Creating a RunFolder is the first thing a run writes, so the caller validates before.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "record/folder_lease.h"
#include "record/metrics.h"
#include "record/tensorboard.h"

namespace hlat {

class RunFolder {
 public:
  // Creates `dir` where needed. UsageError naming the path and the reason when that is impossible, or who is writing to it.
  RunFolder(const std::filesystem::path& dir, std::string_view config_yaml, bool tensorboard, double lease_s = 60,
            const FolderLease::Say& say = {});

  void record(const StepMetrics& m);  // metrics.jsonl and events.out.*; Error when another process has taken over the folder
  spdlog::logger& log() { return *log_; }
  const Log& shared_log() const { return log_; }
  FolderLease& lease() { return lease_; }
  const std::filesystem::path& dir() const { return dir_; }

 private:
  std::filesystem::path dir_;
  FolderLease lease_;
  std::filesystem::path moved_to_;  // where an earlier run's files went; empty when there were none
  Log log_;
  MetricsWriter metrics_;
  std::optional<EventWriter> events_;
};

}  // namespace hlat
