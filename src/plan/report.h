// A plan for people and for machines, with what to change when it does not fit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/dry_run.h"
#include "plan/fit.h"
#include "plan/remedies.h"

namespace hlat {

std::string mesh_text(const Config& config);  // "64 ranks: tp 8 x pp 4 x dp 2, ..."
// Memory, saves, largest entries, FLOPs, traffic. fit: what the host leaves for the staging of saves; the default leaves enough.
std::string plan_table(const Config& config, const std::vector<RankPlan>& stages, const Fit& fit = {});
std::string micro_batch_text(const Config& config);  // what train.micro_batch = auto came to
std::string fit_text(const Config& config, const std::vector<RankPlan>& stages, const Fit& fit, const PlanTarget& target);
nlohmann::ordered_json plan_json(const Config& config, const std::vector<RankPlan>& stages, const Fit& fit, const PlanTarget& target);

}  // namespace hlat
