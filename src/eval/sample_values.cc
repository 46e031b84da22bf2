#include "eval/sample_values.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "eval/results_file.h"

namespace hlat {

namespace {

// How many examples of a subtask the results are of; 0: not known.
int64_t counted(const TaskScores& task, const std::string& subtask) {
  if (task.subtasks.empty()) return task.examples;
  const auto found = std::find_if(task.subtasks.begin(), task.subtasks.end(),
                                  [&](const NamedMetrics& s) { return s.name == subtask || s.name == task.name + "_" + subtask; });
  return found == task.subtasks.end() ? 0 : found->examples;
}

// Limits keep the first examples of each subtask.
void keep_counted(SampleValues& all, const TaskScores& task) {
  std::map<std::string, int64_t> seen;
  std::erase_if(all, [&](const auto& sample) {
    const std::string& subtask = sample.first.first;
    const int64_t wanted = counted(task, subtask);
    return wanted > 0 && seen[subtask]++ >= wanted;
  });
}

}  // namespace

SampleValues read_sample_values(const std::filesystem::path& folder, const TaskScores& task) {
  SampleValues all;
  std::ifstream in(folder / kSamplesName / (task.name + ".jsonl"));
  for (std::string line; std::getline(in, line);) {
    const auto j = nlohmann::json::parse(line, nullptr, false);
    if (!j.is_object()) continue;
    try {
      SampleValue value{.target = j.at("target"), .values = {}};
      for (const auto& [key, number] : j.at("metrics").items()) value.values[key] = number;
      all[{j.at("subtask"), j.at("doc_id")}] = std::move(value);
    } catch (const nlohmann::json::exception&) {
      continue;
    }
  }
  keep_counted(all, task);
  return all;
}

}  // namespace hlat
