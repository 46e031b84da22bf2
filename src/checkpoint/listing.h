// The checkpoints of a folder as a person lists them, with what is wrong with them: none is read but for its index.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/health_record.h"
#include "checkpoint/index.h"

namespace hlat {

struct ListedCheckpoint {
  std::filesystem::path folder;
  int64_t step = 0;
  std::string problem = {};  // why it is not whole; empty: index and sizes of all files are right
  bool leftover = false;     // of a process that died: it has no index or was not committed, and is no checkpoint
  uint64_t bytes = 0;
  // Not known of leftovers, and of checkpoints whose index cannot be read.
  std::optional<CheckpointContent> content = {};
  std::string run = {}, created = {};
  int64_t tokens = 0;
  std::optional<double> loss = {};
  std::optional<HealthRecord> health = {};  // none: it does not say

  bool whole() const { return problem.empty() && !leftover; }
};

// By step; leftovers come last.
std::vector<ListedCheckpoint> list_checkpoints(const std::filesystem::path& parent);

// Files that are not there or do not have their size, in words; empty: all is well. Nothing is read.
std::string missing_bytes(const std::filesystem::path& folder, const CheckpointIndex& index);

}  // namespace hlat
