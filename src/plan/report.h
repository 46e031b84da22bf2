// A plan for people and for machines, and what to change when it does not fit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/dry_run.h"

namespace hlat {

struct Fit {
  std::string device;    // "this machine" or a known name
  double available = 0;  // bytes for one rank
  bool fits(const Plan& plan) const { return static_cast<double>(plan.memory.total()) <= available; }
};

// The plans of one rank per pipeline stage. Rank 0 of tp never holds less than the others of its group, and dp ranks are
// alike, so nothing is larger.
std::vector<Plan> plan_stages(const Config& config, const Ops* scratch_model, Transport comm = Transport::host);
const Plan& fullest(const std::vector<Plan>& stages);

std::string mesh_text(const Config& config);                                    // "64 ranks: tp 8 x pp 4 x dp 2, ..."
std::string plan_table(const Config& config, const std::vector<Plan>& stages);  // memory, largest entries, FLOPs, traffic
std::string fit_text(const Config& config, const std::vector<Plan>& stages, const Fit& fit, const Ops* scratch_model,
                     Transport comm = Transport::host);
nlohmann::ordered_json plan_json(const Config& config, const std::vector<Plan>& stages, const Fit& fit);

}  // namespace hlat
