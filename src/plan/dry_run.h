// The dry run: one rank's real step on null ops, null comms and measuring memory. What it asks for is the plan, exact by
// construction: memory, FLOPs, and traffic on every axis of the mesh.
#pragma once

#include <string>
#include <vector>

#include "comm/comm.h"
#include "comm/transport.h"
#include "config/config.h"
#include "ops/cost.h"
#include "ops/ops.h"
#include "parallel/mesh.h"
#include "tensor/region.h"

namespace hlat {

struct AxisTraffic {
  std::string axis;
  int size = 1;
  Traffic traffic;  // of one optimizer step, sent by this rank
};

std::vector<AxisTraffic> traffic_of(const Mesh& mesh);

struct Plan {
  MemoryPlan memory;
  Cost cost;  // of one optimizer step on this rank
  std::vector<AxisTraffic> traffic;
  size_t host_bytes = 0;  // of the host's memory for communication, where the regions lie on a device
  MeshShape mesh;
  MeshCoord coord;
  int64_t parameters = 0;  // of the whole model
  int64_t tokens_per_step = 0;
  double model_flops_per_token = 0;  // as MFU counts
  double executed_flops() const { return cost[OpKind::matmul].flops + cost[OpKind::attention].flops + cost[OpKind::attention_bwd].flops; }
};

// Of the given rank of the config's mesh; parallel.dp must be known. scratch_model answers how much scratch the
// planned-for backend's ops take; null: none. comm: how its ranks exchange tensors.
Plan dry_run(const Config& config, const Ops* scratch_model, int rank = 0, Transport comm = Transport::host);

}  // namespace hlat
