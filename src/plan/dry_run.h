// The dry run: one rank's real pass on null ops, null comms and measuring memory. What it asks for is the plan, exact by construction:
// memory, FLOPs, and traffic on every axis of the mesh.
#pragma once

#include "comm/transport.h"
#include "model/rank_plan.h"
#include "trace/step_trace.h"

namespace hlat {

// What a plan is made for.
struct PlanTarget {
  const Ops* scratch_model = nullptr;     // says how much scratch the ops of the planned-for backend take; null: none
  Transport transport = Transport::host;  // of its tensors between ranks
  ParamUse use = ParamUse::training;      // a training step, or the evaluation of one micro-batch on every replica with weights alone
  bool cached = false;                    // an evaluation with a cache of keys and values (model/kv_passes.h), as tasks and generation have
};

// Of the given rank of the config's mesh; parallel.dp must be known. trace: all that a training step does is written there.
RankPlan dry_run(const Config& config, const PlanTarget& target, int rank = 0, StepTrace* trace = nullptr);

// The plans of one rank per pipeline stage. Rank 0 of tp never holds less than the others of its group, and dp ranks are
// alike, so nothing is larger.
std::vector<RankPlan> plan_stages(const Config& config, const PlanTarget& target);
const RankPlan& fullest(const std::vector<RankPlan>& stages);

}  // namespace hlat
