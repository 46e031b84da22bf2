// results.json, in the shape of lm-evaluation-harness:
//   results            by task and subtask: "acc,none", "acc_stderr,none", ...
//   groups, group_subtasks   tasks that have subtasks, and which
//   configs            by task: title, group, headline metric, shots; versions, n-shot, higher_is_better, n-samples as in the harness
//   table              the groups of the paper's table with their means
//   errors, warnings   by task
//   config, date, ...  the header: what was evaluated and how
// Files of the harness itself are read too (read_results.h).
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "eval/results.h"

namespace hlat {

inline constexpr const char* kResultsName = "results.json";
inline constexpr const char* kSamplesName = "samples";  // folder of the per-sample logs, next to it

nlohmann::ordered_json to_json(const Results& results);
void save_results(const Results& results, const std::filesystem::path& file);  // whole or not at all
// The file, or that of a folder. UsageError when it is none, with the evaluations of a run folder that was given.
Results load_results(const std::filesystem::path& given);

}  // namespace hlat
