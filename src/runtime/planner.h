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
  explicit Planner(Backend& backend) : ops_(backend.make_ops(measuring_)) {}
  const Ops* scratch_model() const { return ops_.get(); }
  Plan rank(const Config& config, int rank) const { return dry_run(config, ops_.get(), rank); }
  std::vector<Plan> stages(const Config& config) const { return plan_stages(config, ops_.get()); }

 private:
  Region measuring_;
  std::unique_ptr<Ops> ops_;
};

// What each of `local_ranks` on this machine may take.
inline Fit fit_here(Backend& backend, int local_ranks) {
  return {.device = local_ranks > 1 ? fmt::format("this machine, shared by {} ranks", local_ranks) : "this machine",
          .available = static_cast<double>(backend.device().memory_available()) / local_ranks};
}

}  // namespace hlat
