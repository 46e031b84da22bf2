// The simulated time of a step for people and for machines: how long, how fast, and where each stage's time goes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "plan/timed_plan.h"

namespace hlat {

// peak_flops: of one rank, for MFU; nothing: not known.
std::string time_text(const TimedPlan& plan, std::optional<double> peak_flops);
nlohmann::ordered_json time_json(const TimedPlan& plan, std::optional<double> peak_flops);

}  // namespace hlat
