// Dry runs for a concrete backend: its ops say how much scratch they take.
#pragma once

#include <memory>
#include <vector>

#include "ops/device.h"
#include "plan/dry_run.h"
#include "plan/report.h"

namespace hlat {

class Planner {
 public:
  Planner(Backend& backend, Transport comm) : ops_(backend.make_ops(measuring_)), comm_(comm) {}
  const Ops* scratch_model() const { return ops_.get(); }
  Transport comm() const { return comm_; }
  Plan rank(const Config& config, int rank) const { return dry_run(config, ops_.get(), rank, comm_); }
  std::vector<Plan> stages(const Config& config) const { return plan_stages(config, ops_.get(), comm_); }

 private:
  Region measuring_;
  std::unique_ptr<Ops> ops_;
  Transport comm_;
};

// What each of `sharing` ranks on this machine, or on its GPU, may take.
inline Fit fit_here(Backend& backend, int sharing) {
  const std::string what = backend.device_id().empty() ? "this machine" : "this machine's GPU";
  return {.device = sharing > 1 ? fmt::format("{}, shared by {} ranks", what, sharing) : what,
          .available = static_cast<double>(backend.device().memory_available()) / sharing};
}

}  // namespace hlat
