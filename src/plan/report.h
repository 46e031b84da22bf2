// A plan for people and for machines, and what to change when it does not fit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/dry_run.h"

namespace hlat {

struct Fit {
  std::string device;    // "this machine" or a known name
  double available = 0;  // bytes for one rank
  bool fits(const RankPlan& plan) const { return static_cast<double>(plan.memory.total()) <= available; }
};

std::string mesh_text(const Config& config);                                        // "64 ranks: tp 8 x pp 4 x dp 2, ..."
std::string plan_table(const Config& config, const std::vector<RankPlan>& stages);  // memory, largest entries, FLOPs, traffic
std::string fit_text(const Config& config, const std::vector<RankPlan>& stages, const Fit& fit, const PlanTarget& target);
nlohmann::ordered_json plan_json(const Config& config, const std::vector<RankPlan>& stages, const Fit& fit);

}  // namespace hlat
