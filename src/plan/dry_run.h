// The dry run: the real step on null ops and measuring memory. What it asks for is the plan, exact by construction.
#pragma once

#include "config/config.h"
#include "ops/cost.h"
#include "ops/ops.h"
#include "tensor/region.h"

namespace hlat {

struct Plan {
  MemoryPlan memory;
  Cost cost;  // of one optimizer step
  int64_t parameters = 0;
  int64_t tokens_per_step = 0;
  double model_flops_per_token = 0;  // as MFU counts
  double executed_flops() const { return cost[OpKind::matmul].flops + cost[OpKind::attention].flops + cost[OpKind::attention_bwd].flops; }
};

// scratch_model answers how much scratch the planned-for backend's ops take; null: none.
Plan dry_run(const Config& config, const Ops* scratch_model);

}  // namespace hlat
