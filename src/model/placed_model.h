// A model in the memory of one rank: regions, ops and the executor on them. With a plan every region has exactly the planned bytes;
// without one, on a null backend, regions only measure, and their high-water marks are the plan.
#pragma once

#include <memory>

#include "model/executor.h"
#include "model/rank_plan.h"

namespace hlat {

class PlacedModel {
 public:
  // backend and mesh must outlive this. plan: null to measure.
  PlacedModel(const Config& config, const Precision& precision, const Mesh& mesh, Backend& backend, const MemoryPlan* plan, ParamUse use)
      : memory_(backend.device(), plan),
        ops_(use == ParamUse::training ? backend.make_ops(temp()) : backend.make_inference_ops(temp())),
        inference_(use == ParamUse::training && config.eval.in_loop() ? backend.make_inference_ops(temp()) : nullptr),
        executor_(config, precision, mesh, memory_.memory(), *ops_, inference_ ? *inference_ : *ops_, backend.device(), use) {}

  Executor& executor() { return executor_; }
  Ops& ops() { return *ops_; }
  Device& device() { return executor_.device(); }
  const Mesh& mesh() const { return executor_.mesh(); }
  MemoryPlan high_water() { return memory_.memory().high_water(); }

 private:
  Region& temp() { return memory_.memory()[Purpose::temp]; }

  PlannedMemory memory_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Ops> inference_;  // of tasks that are evaluated while the model trains
  Executor executor_;
};

}  // namespace hlat
