// What one rank puts into its file of a checkpoint: runs of its parameters' state one after the other, bucket by bucket in the order of
// the update, and the copy of them to staging memory. Layout of the store alone decides it, so it is made once.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "checkpoint/index.h"
#include "checkpoint/staging.h"
#include "checkpoint/state_pieces.h"
#include "param/param_store.h"

namespace hlat {

struct RankState {
  std::vector<SavedTensor> tensors;  // that this rank has a part of; pieces name them by number
  std::vector<StatePiece> runs;
  std::vector<Piece> pieces;         // the same elements, as the file has them
  uint64_t bytes = 0;                // in the file
  uint64_t source_bytes = 0;         // of the runs
  bool rounds = false;               // what is f32 becomes bf16
  std::vector<uint64_t> bucket_end;  // of source_bytes, these many are copied when the bucket is; by bucket

  RankState(const ParamStore& params, int shard, int shards, CheckpointContent content);
};

// Copies all of it to staging, through `copies` where state lies on a device. `copied` is told how many source bytes are there, after each
// buffer. False: staging was stopped.
bool stage(const RankState& state, Staging& staging, CopyStream* copies, const std::function<void(uint64_t)>& copied);

}  // namespace hlat
