// Loads a checkpoint into the parameter store of a rank of any mesh. Each dp rank reads its flat share of every bucket, and the groups of
// dp hand the shares round, so that no byte is read twice for the sake of replicas. Types may differ from those that were saved: what is
// kept and what is made of what is told in words.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/state_source.h"
#include "ops/device.h"
#include "parallel/mesh.h"
#include "param/param_store.h"

namespace hlat {

struct LoadResult {
  std::vector<std::string> conversions;  // of all ranks, one line each: "weights f32, from the masters: exact"; empty: all as it was saved
  uint64_t bytes_read = 0;               // by this rank
};

// Memory of the store need not have been written before. UsageError on all ranks when the checkpoint cannot be loaded into this model
// (another shape, tensors missing), DamagedCheckpoint on all when a rank finds it damaged, FaultError when a rank
// misses files that rank 0 sees. Collective over the mesh.
LoadResult load_state(CheckpointReader& reader, const ParamStore& params, const Mesh& mesh, Device& device, LoadWhat what, int threads);

}  // namespace hlat
