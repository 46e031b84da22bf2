// Saves the state of a run while it trains. State changes only in the update, so after a step it is copied to staging memory behind the
// next step's forward and backward, bucket by bucket in the order of the update, and the update of a bucket waits until its copy is done.
// Other threads write what is staged, take checksums and fsync; when a rank's file is on disk it tells the others through a group of their
// own, and rank 0 writes the index and commits.
//
// With less staging memory than state the copy goes on as the writing frees it, and the update waits for that; after max_wait_s the save is
// given up. A save never mixes steps and never ends a run: what goes wrong is an outcome. Collective: all ranks begin the same saves.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/index.h"
#include "comm/comm.h"
#include "ops/device.h"
#include "param/param_store.h"

namespace hlat {

struct SaveOptions {
  size_t staging_bytes = 0;  // of this rank; rounded up to whole buffers (staging.h)
  double max_wait_s = 60;    // that updates wait for copies, in all of one save
  double round_s = 2;        // ranks that wait for others hear from them this often; well below the time limit of their group
  // Called by the thread that writes, before each part of the file, with the bytes before it. What it throws fails the save as an error of
  // the disk does. A file system that is slow, hangs or fails can be put here.
  std::function<void(uint64_t)> before_write = {};
};

// What is saved. Only rank 0's words are looked at, but for `content`, `step`, `run`, `parent` and own_record.
struct SaveRequest {
  std::filesystem::path parent;  // becomes PARENT/step_N
  CheckpointContent content = CheckpointContent::training;
  CheckpointIndex index;        // without tensors and files
  std::string own_record = {};  // of this rank, for join_records; empty: none
  // On rank 0, before the index is written, from a thread of the save: the ranks' own records become records of the index.
  std::function<void(CheckpointIndex& index, std::vector<std::string> own_records)> join_records = {};
};

struct SaveOutcome {
  std::filesystem::path folder = {};  // of the checkpoint, or where it was to be
  CheckpointContent content = CheckpointContent::training;
  int64_t step = 0;
  std::string problem = {};  // empty: committed. On rank 0 it names the rank.
  bool disk_full = false;    // on any rank
  uint64_t bytes = 0;        // of all ranks
  uint64_t room = 0;         // that it was to take on the disk, or took
  double seconds = 0;        // from begin() to the commit
  double copy_s = 0;         // of this rank: until the last bucket was copied
  double update_wait_s = 0;  // of this rank: that the host waited for copies before updates; a device with work before them waits less
};

class Saver {
 public:
  // commit: a group of all ranks for the saves alone, for host memory, or null with one rank. params and device must outlive this.
  // shard, shards: this rank's place along dp.
  Saver(const ParamStore& params, Device& device, int shard, int shards, std::unique_ptr<Comm> commit, const SaveOptions& options);
  // Waits for the end of a save under way, and so for a disk that hangs: whoever may not wait that long calls wait() first, and when it is
  // over ends the process instead. What was not committed is a leftover then (remove_leftovers).
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  static size_t state_bytes(const ParamStore& params, int shard, int shards);  // that one rank saves: staging for all of it

  // A save is under way. One that failed has its outcome before that ends: when all ranks have stopped writing and its folder is removed. A
  // writer that hangs in the system keeps it busy on all ranks, and nothing else.
  bool busy() const;
  // Another number than before while the save under way gets on, here or on another rank: what it has written.
  uint64_t progress() const;
  // Between two steps; not while busy on any rank. Returns at once: copying begins.
  void begin(SaveRequest request);
  void before_update(int bucket);  // the bucket's elements may be changed when it returns
  // Waits until the latest save has an outcome, at most so long; false: it goes on.
  bool wait(double seconds);
  std::optional<SaveOutcome> take_outcome();  // of a save that ended, once

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hlat
