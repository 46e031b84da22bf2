// Which elements of the global state a rank saves and loads. Of every bucket, weights and optimizer state alike, each of the dp ranks has
// an equal flat share, with ZeRO-1 or without; so every byte is written by one rank and read by one, and dp's groups carry the rest. Rows
// that several ranks hold are saved by the first of them (ParamSpec::counted), whose optimizer state is the one that counts.
#pragma once

#include <vector>

#include "checkpoint/index.h"
#include "param/param_store.h"

namespace hlat {

// A run of elements of one parameter's tensor on this rank.
struct StatePiece {
  StateKind kind = StateKind::weight;
  ParamId param = -1;
  Tensor tensor;  // (count), on the device, contiguous
  ElementMap map;
  int bucket = 0;
};

enum class Rows : uint8_t { counted, all };

// This rank's share, `shard` of `shards` along dp; in the order of the buckets, and within one by kind. A store for evaluation has
// weights only. zero1: whether the store's optimizer state is that share alone.
std::vector<StatePiece> state_pieces(const ParamStore& params, int shard, int shards, Rows rows);

// The tensors of the whole model that a store saves, in the order of the store's parameters, by kind; those of all ranks together are the
// checkpoint's.
SavedTensor saved_tensor(const ParamStore& params, ParamId param, StateKind kind);

}  // namespace hlat
