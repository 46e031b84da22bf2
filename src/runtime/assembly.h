// One rank of a run, put together from a config: how its tensors move, its plan, mesh, memory and executor. Training, evaluation,
// benchmarks and tests all build theirs here.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "model/placed_model.h"
#include "plan/report.h"
#include "runtime/device_comm.h"

namespace hlat {

class Assembly {
 public:
  // Chooses the transport and plans; nothing is allocated yet. Collective over `world`, which must outlive this as the backend must.
  // cached: an evaluation with a cache of keys and values (PlanTarget).
  Assembly(const Config& config, Backend& backend, Comm& world, int local_ranks, ParamUse use = ParamUse::training, bool cached = false);

  const RankPlan& plan() const { return plan_; }  // of this rank
  PlanTarget target() const {
    return {.scratch_model = scratch_model_.get(), .transport = comm_.transport(), .use = use_, .cached = cached_};
  }
  Fit fit() const;  // what each rank here may take

  // Makes the mesh, once: what a transport takes of the device is taken then. Collective.
  void connect(const DeviceComm::WrapComm& wrap = {});
  // Takes the planned memory and places the model in it, once; connects first where that was not done. Collective.
  PlacedModel& build(const DeviceComm::WrapComm& wrap = {});
  std::string describe() const;  // the machine and how tensors move, for the log; after build()

 private:
  Config config_;
  Backend& backend_;
  ParamUse use_;
  bool cached_;
  int local_ranks_;
  DeviceComm comm_;
  Region measuring_;
  std::unique_ptr<Ops> scratch_model_;
  RankPlan plan_;
  std::optional<Mesh> mesh_;
  std::optional<PlacedModel> model_;
};

// What each of `sharing` ranks on this machine, or on its GPU, may take; local_ranks: of all GPUs of this machine, who share its memory.
Fit fit_here(Backend& backend, int sharing, int local_ranks);

}  // namespace hlat
