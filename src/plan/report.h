// A plan for people and for machines, and what to change when it does not fit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/dry_run.h"

namespace hlat {

struct Fit {
  std::string device;    // "this machine" or a known name
  double available = 0;  // bytes
  bool fits(const Plan& plan) const { return static_cast<double>(plan.memory.total()) <= available; }
};

std::string plan_table(const Config& config, const Plan& plan);  // memory by region, largest entries, FLOPs
std::string fit_text(const Config& config, const Plan& plan, const Fit& fit, const Ops* scratch_model);
nlohmann::ordered_json plan_json(const Config& config, const Plan& plan, const Fit& fit);

}  // namespace hlat
