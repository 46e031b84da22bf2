// What `hlat train` says when a run has ended: for people, and as JSON.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "train/trainer.h"

namespace hlat {

std::string summary_text(const Config& config, const TrainSummary& summary);
std::string alarms_text(const std::map<std::string, int64_t>& told);  // "grad_growth, leak 2 times", by rule
std::string samples_text(const std::vector<std::string>& samples);
nlohmann::ordered_json summary_json(const Config& config, const TrainSummary& summary, const std::vector<std::string>& samples);

}  // namespace hlat
