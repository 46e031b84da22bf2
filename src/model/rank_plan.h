// What one rank needs for one pass over its model, a training step or an evaluation: memory, cost, traffic. The result of a dry run,
// and what the real pass is held against.
#pragma once

#include <string>
#include <vector>

#include "ops/cost.h"
#include "parallel/mesh.h"
#include "param/param_store.h"

namespace hlat {

struct AxisTraffic {
  std::string axis;
  int size = 1;
  Traffic traffic;  // of one pass, sent by this rank
};

std::vector<AxisTraffic> traffic_of(const Mesh& mesh);

struct RankPlan {
  ParamUse use = ParamUse::training;
  MemoryPlan memory;
  Cost cost;
  std::vector<AxisTraffic> traffic;
  size_t host_bytes = 0;   // of the host's memory for communication, where the regions lie on a device
  size_t fp8_saves = 0;    // bytes that region saved would have more with bf16 in place of FP8
  size_t saved_bytes = 0;  // of state that this rank puts into a checkpoint
  MeshShape mesh;
  MeshCoord coord;
  int64_t parameters = 0;      // of the whole model
  int64_t tokens = 0;          // of the pass, over all ranks
  double flops_per_token = 0;  // of the model, as MFU counts
  double executed_flops() const { return cost[OpKind::matmul].flops + cost[OpKind::attention].flops + cost[OpKind::attention_bwd].flops; }

  // Contract: the high-water mark of every region and the host memory for communication equal the plan.
  void check_used(const MemoryPlan& used, const Mesh& mesh) const;
};

}  // namespace hlat
