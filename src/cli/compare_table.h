// Models side by side, for people and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "eval/compare.h"

namespace hlat {

// Rows with differences of the first model to the others, the summary, and which tests were made.
std::string comparison_text(const Comparison& comparison);
std::string summary_text(const Comparison& comparison);  // win counts, and which models were evaluated on parts of tasks
nlohmann::ordered_json comparison_json(const Comparison& comparison);

}  // namespace hlat
