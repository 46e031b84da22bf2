// Models side by side, for people and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "eval/compare.h"

namespace hlat {

// Rows with differences of the first model to the others, win counts, and which tests were made.
std::string comparison_text(const Comparison& comparison);
std::string wins_text(const Comparison& comparison, size_t other);  // of the first against one other: 0 is the second model
nlohmann::ordered_json comparison_json(const Comparison& comparison);

}  // namespace hlat
