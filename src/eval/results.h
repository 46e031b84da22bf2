// What an evaluation came to: the numbers of its tasks, and of the groups that the paper's table has. results_file.h keeps them in a file.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/task_run.h"

namespace hlat {

struct MetricResult {
  std::string key;   // "acc,none"
  double value = 0;  // as measured: shares are between 0 and 1
  double error = 0;  // standard error; NaN: not known
  bool higher_is_better = true;
  bool share = true;  // of examples: shown in percent

  std::string label() const;      // "acc", "exact_match strict-match"
  std::string error_key() const;  // "acc_stderr,none"
};

struct NamedMetrics {
  std::string name;
  std::vector<MetricResult> metrics;
  int64_t examples = 0, available = 0;  // evaluated, and all there are; 0: not known
};

struct TaskScores : NamedMetrics {
  std::string title, group;
  bool in_group_mean = true;
  int64_t shots = 0, version = 1;
  size_t headline = 0;  // the metric of the table
  std::vector<NamedMetrics> subtasks = {};
  std::string error = {};  // no metrics then
  std::vector<std::string> warnings = {};
};

struct Results {
  std::string model;                   // for people: what was evaluated
  nlohmann::ordered_json header = {};  // "config", "date" and whatever else the file has to say
  std::vector<TaskScores> tasks = {};
  std::filesystem::path folder = {};  // of its results.json, with the per-sample logs, where there are any; empty: another file

  const TaskScores* find(const std::string& task) const;  // null: not evaluated
  void put(TaskScores scores);                            // in the place of those it had
};

TaskScores scores_of(const TaskResult& result);

// The mean of the headline metrics of a group's tasks: where there is one, all are shares of one direction.
struct GroupScore {
  std::string name;
  std::vector<const TaskScores*> tasks;  // those that count first
  size_t counted = 0;                    // tasks in the mean; 0: no mean
  MetricResult mean = {};                // its error from those of the tasks, as of independent measurements
};
std::vector<GroupScore> groups_of(const Results& results);  // MMLU, BBH, CR, WK, RC, Math, Code, truth and bias, LM, then others

}  // namespace hlat
