#include "eval/results.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hlat {

namespace {

constexpr std::array kGroups = {"MMLU", "BBH", "CR", "WK", "RC", "Math", "Code", "truth and bias", "LM"};

MetricResult metric_of(const Metric& metric, const Estimate& estimate) {
  return {.key = metric.key(),
          .value = estimate.value,
          .error = estimate.error,
          .higher_is_better = metric.higher_is_better,
          .share = metric.aggregation == Aggregation::mean && metric.name.find("likelihood") == std::string::npos};
}

std::vector<MetricResult> metrics_of(const TaskInfo& info, const std::vector<Estimate>& estimates) {
  std::vector<MetricResult> all;
  for (size_t m = 0; m < estimates.size(); ++m) all.push_back(metric_of(info.metrics[m], estimates[m]));
  return all;
}

// Headlines that have a mean: shares that are better in one direction.
bool have_mean(const std::vector<const TaskScores*>& tasks) {
  return std::all_of(tasks.begin(), tasks.end(), [&](const TaskScores* t) {
    const MetricResult& m = t->metrics[t->headline];
    return m.share && m.higher_is_better == tasks.front()->metrics[tasks.front()->headline].higher_is_better;
  });
}

void take_mean(GroupScore& group) {
  std::vector<const TaskScores*> counted;
  for (const TaskScores* t : group.tasks)
    if (t->in_group_mean && !t->metrics.empty()) counted.push_back(t);
  const bool whole = std::none_of(group.tasks.begin(), group.tasks.end(), [](auto* t) { return t->in_group_mean && t->metrics.empty(); });
  if (counted.empty() || !whole || !have_mean(counted)) return;
  double sum = 0, variance = 0;
  for (const TaskScores* t : counted) {
    const MetricResult& m = t->metrics[t->headline];
    sum += m.value, variance += m.error * m.error;
  }
  const auto n = static_cast<double>(counted.size());
  const MetricResult& first = counted.front()->metrics[counted.front()->headline];
  group.counted = counted.size();
  group.mean = {.key = counted.size() == 1 ? first.key : "mean",
                .value = sum / n,
                .error = std::sqrt(variance) / n,
                .higher_is_better = first.higher_is_better};
}

}  // namespace

std::string MetricResult::label() const {
  const size_t comma = key.find(',');
  if (comma == std::string::npos || key.substr(comma + 1) == "none") return key.substr(0, comma);
  return key.substr(0, comma) + " " + key.substr(comma + 1);
}

std::string MetricResult::error_key() const {
  const size_t comma = std::min(key.find(','), key.size());
  return key.substr(0, comma) + "_stderr" + key.substr(comma);
}

const TaskScores* Results::find(const std::string& task) const {
  const auto found = std::find_if(tasks.begin(), tasks.end(), [&](const TaskScores& t) { return t.name == task; });
  return found == tasks.end() ? nullptr : &*found;
}

void Results::put(TaskScores scores) {
  const auto old = std::find_if(tasks.begin(), tasks.end(), [&](const TaskScores& t) { return t.name == scores.name; });
  if (old == tasks.end())
    tasks.push_back(std::move(scores));
  else
    *old = std::move(scores);
}

TaskScores scores_of(const TaskResult& result) {
  TaskScores scores;
  scores.name = result.info.name, scores.title = result.info.title, scores.group = result.info.group;
  scores.in_group_mean = result.info.in_group_mean;
  scores.shots = result.shots, scores.version = result.info.version, scores.headline = result.info.headline;
  scores.metrics = metrics_of(result.info, result.metrics);
  scores.error = result.error, scores.warnings = result.warnings();
  for (const SubtaskResult& s : result.subtasks) {
    scores.examples += s.examples, scores.available += s.available;
    if (!result.info.has_subtasks) continue;
    NamedMetrics& sub = scores.subtasks.emplace_back();
    sub.name = s.name, sub.metrics = metrics_of(result.info, s.metrics), sub.examples = s.examples, sub.available = s.available;
  }
  return scores;
}

std::vector<GroupScore> groups_of(const Results& results) {
  std::vector<GroupScore> groups;
  for (const char* name : kGroups) groups.push_back({.name = name, .tasks = {}});
  for (const bool counts : {true, false})
    for (const TaskScores& task : results.tasks) {
      if (task.in_group_mean != counts) continue;
      const std::string name = task.group.empty() ? "other" : task.group;
      auto group = std::find_if(groups.begin(), groups.end(), [&](const GroupScore& g) { return g.name == name; });
      if (group == groups.end()) group = groups.insert(groups.end(), {.name = name, .tasks = {}});
      group->tasks.push_back(&task);
    }
  std::erase_if(groups, [](const GroupScore& g) { return g.tasks.empty(); });
  for (GroupScore& group : groups) take_mean(group);
  return groups;
}

}  // namespace hlat
