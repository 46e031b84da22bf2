// How the commands of ckpt show what a checkpoint says about the health of its state.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "checkpoint/health_record.h"

namespace hlat {

std::string health_text(const std::optional<HealthRecord>& health, int64_t step);  // empty: it does not say
nlohmann::ordered_json health_json(const std::optional<HealthRecord>& health, int64_t step);

}  // namespace hlat
