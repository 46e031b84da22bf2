// Published results of other models (tasks/published.json), to compare with. Groups of which only the mean is published are tasks with
// the group's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "eval/results.h"

namespace hlat {

std::string_view published_text();  // the file, in the binary

std::vector<Results> published_results();
// One of them by its name, in small letters or not. UsageError, with the nearest, where there is none.
Results published_result(const std::string& model);

}  // namespace hlat
