// Results from JSON in the shape of lm-evaluation-harness (results_file.h). Files of the harness itself do not say which group a task is
// in, nor which of its numbers counts: the built-in task of that name does. One that is not built in has no group there.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "eval/results.h"

namespace hlat {

// The model's name is empty where the file has none. UsageError says what is not as it should be.
Results read_results(const nlohmann::ordered_json& json);

}  // namespace hlat
