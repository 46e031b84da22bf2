// What the per-sample log of an evaluation says of each example of a task, for comparisons.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "eval/results.h"

namespace hlat {

struct SampleValue {
  std::string target;                    // what would have been right: tells examples of two sets apart
  std::map<std::string, double> values;  // by metric
};
using SampleValues = std::map<std::pair<std::string, int64_t>, SampleValue>;  // by subtask and number of the example

// Of the examples that the task's numbers are of: a log may have more, of an evaluation with a larger limit. `folder` is that of the
// results. Empty where there is no log; lines that are no samples are left out.
SampleValues read_sample_values(const std::filesystem::path& folder, const TaskScores& task);

}  // namespace hlat
