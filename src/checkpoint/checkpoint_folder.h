// Folders of checkpoints. A checkpoint is written to step_N.tmp, which becomes step_N with one rename when all of it, its index last, is on
// disk. What has no index does not exist: it is left over from a process that died, and is removed when the next one begins.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/index.h"

namespace hlat {

std::filesystem::path checkpoint_path(const std::filesystem::path& parent, int64_t step);  // PARENT/step_N
std::optional<int64_t> step_of(const std::string& name);  // of a folder's name; none: not that of a checkpoint

// Steps that have a checkpoint here, ascending; no folder: none. The index is looked for, not read. fail_storage when it cannot be known.
std::vector<int64_t> checkpoint_steps(const std::filesystem::path& parent);

// DamagedCheckpoint, with the path, when it is not whole; FaultError when it cannot be read.
CheckpointIndex read_index(const std::filesystem::path& folder);

// A checkpoint in the making. Any number of processes write files into its folder; one of them makes it and commits it.
class NewCheckpoint {
 public:
  // Makes PARENT/step_N.tmp, empty: what an earlier attempt left there is removed. FaultError or UsageError: fail_storage.
  NewCheckpoint(std::filesystem::path parent, int64_t step);
  static std::filesystem::path folder_of(const std::filesystem::path& parent, int64_t step);  // PARENT/step_N.tmp

  // Files and their names are on disk (fsync) when this is called. Writes the index, and renames; a checkpoint of this step that is
  // there already is replaced.
  void commit(const CheckpointIndex& index);
  void discard() noexcept;  // removes what there is

 private:
  std::filesystem::path parent_, folder_;
  int64_t step_;
};

// The index goes first: from then on the checkpoint does not exist. FaultError.
void remove_checkpoint(const std::filesystem::path& folder);
// What processes that died have left: step_N.tmp, step_N.replaced and folders without an index. fail_storage when it cannot be known.
struct Leftover {
  std::filesystem::path folder;
  int64_t step = 0;
};
std::optional<int64_t> leftover_step_of(const std::string& name);      // of step_N.tmp and step_N.replaced
std::vector<Leftover> leftovers(const std::filesystem::path& parent);  // by step
// Removes them. Nobody may be writing here.
void remove_leftovers(const std::filesystem::path& parent);

// Steps to remove so that the `keep` latest stay, and for each multiple of keep_every (0: none) the first at or after it.
std::vector<int64_t> beyond_retention(const std::vector<int64_t>& steps, int64_t keep, int64_t keep_every);

uint64_t free_bytes(const std::filesystem::path& folder);  // of its file system, for this user

}  // namespace hlat
