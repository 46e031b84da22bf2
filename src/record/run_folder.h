// The folder a run leaves: config.yaml, metrics.jsonl, events.*, log.txt. Nothing is ever overwritten: files of an
// earlier run are moved into previous_1, previous_2, ... first. One live run per folder, held by a lock on it.
// Creating a RunFolder is the first thing a run writes, so the caller validates before.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "record/metrics.h"
#include "record/tensorboard.h"

namespace hlat {

// The exclusive right to write into a folder while the object lives.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

class RunFolder {
 public:
  // Creates `dir` where needed. Error naming the path and the reason when that is impossible.
  RunFolder(const std::filesystem::path& dir, std::string_view config_yaml, bool tensorboard);

  void record(const StepMetrics& m);  // metrics.jsonl and events.*
  spdlog::logger& log() { return *log_; }

 private:
  std::filesystem::path dir_;
  FolderLock lock_;
  std::filesystem::path moved_to_;  // where an earlier run's files went; empty when there were none
  Log log_;
  MetricsWriter metrics_;
  std::optional<EventWriter> events_;
};

}  // namespace hlat
