#include "cli/eval_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/table.h"
#include "eval/built_in_tasks.h"

namespace hlat {

namespace {

using Rows = std::vector<std::vector<std::string>>;

void add_task(Rows& rows, const TaskScores& task) {
  const std::string title = "  " + task.title + (task.in_group_mean ? "" : " *");
  if (task.metrics.empty()) {
    rows.push_back({title, "failed", "", "", std::to_string(task.shots), examples_text(task)});
    return;
  }
  std::vector<size_t> order = {task.headline};
  for (size_t m = 0; m < task.metrics.size(); ++m)
    if (m != task.headline) order.push_back(m);
  for (const size_t m : order) {
    const bool first = m == task.headline;
    const MetricResult& metric = task.metrics[m];
    rows.push_back({first ? title : "", metric.label(), value_text(metric), error_text(metric), first ? std::to_string(task.shots) : "",
                    first ? examples_text(task) : ""});
  }
}

// "mean of 6", or "mean of 2 of 6" where the group has tasks that were not evaluated; of a single one its metric.
std::string mean_text(const GroupScore& group) {
  size_t all = group.counted;
  for (const std::string& name : built_in_group(group.name))
    all += std::none_of(group.tasks.begin(), group.tasks.end(), [&](const TaskScores* t) { return t->name == name; }) ? 1 : 0;
  const std::string part = all > group.counted ? fmt::format("{} of {}", group.counted, all) : std::to_string(group.counted);
  if (group.counted > 1) return "mean of " + part;
  return group.mean.label() + (all > 1 ? ", " + part : "");
}

// A column of the table of models.
struct Column {
  std::string name;
  std::string task, key;  // empty: the mean of the group `name`
};

bool has_own_columns(const std::string& group) { return group == "Code" || group == "truth and bias" || group == "LM"; }

std::vector<Column> columns_of(const std::vector<Results>& models) {
  std::vector<Column> columns;
  const auto add = [&](const Column& c) {
    const auto same = [&](const Column& o) { return o.task == c.task && o.key == c.key && (!c.task.empty() || o.name == c.name); };
    if (std::none_of(columns.begin(), columns.end(), same)) columns.push_back(c);
  };
  std::vector<Column> failed;  // that may have numbers in no model
  for (const Results& r : models)
    for (const GroupScore& g : groups_of(r)) {
      if (!has_own_columns(g.name)) {
        add({.name = g.name, .task = "", .key = ""});
        continue;
      }
      for (const TaskScores* t : g.tasks) {
        if (t->metrics.empty()) {
          failed.push_back({.name = t->title, .task = t->name, .key = ""});
          continue;
        }
        const std::string& key = t->metrics[t->headline].key;
        add({.name = g.name == "Code" ? key.substr(0, key.find(',')) : t->title, .task = t->name, .key = key});
      }
    }
  for (const Column& f : failed)
    if (std::none_of(columns.begin(), columns.end(), [&](const Column& c) { return c.task == f.task; })) columns.push_back(f);
  return columns;
}

bool any_failed(const GroupScore& group) {
  return std::any_of(group.tasks.begin(), group.tasks.end(), [](const TaskScores* t) { return t->in_group_mean && !t->error.empty(); });
}

std::string cell(const Results& model, const std::vector<GroupScore>& groups, const Column& column) {
  if (column.task.empty()) {
    for (const GroupScore& g : groups)
      if (g.name == column.name) return g.counted > 0 ? value_text(g.mean) : any_failed(g) ? "failed" : "";
    return "";
  }
  const TaskScores* task = model.find(column.task);
  if (task == nullptr) return "";
  if (!task->error.empty()) return "failed";
  for (const MetricResult& m : task->metrics)
    if (m.key == column.key) return value_text(m);
  return "";
}

}  // namespace

std::string number_text(double value, bool share) {
  constexpr double kPercent = 100, kLarge = 1e5;
  if (std::isnan(value)) return "";
  if (share) return fmt::format("{:.1f}", value * kPercent);
  return std::abs(value) < kLarge ? fmt::format("{:.3f}", value) : fmt::format("{:.3g}", value);
}

std::string value_text(const MetricResult& metric) { return number_text(metric.value, metric.share); }
std::string error_text(const MetricResult& metric) { return number_text(metric.error, metric.share); }

std::string examples_text(const NamedMetrics& numbers) {
  const std::string n = std::to_string(numbers.examples);
  return numbers.examples < numbers.available ? fmt::format("{} of {}", n, numbers.available) : n;
}

std::string results_text(const Results& results) {
  Rows rows = {{"", "metric", "value", "stderr", "shots", "n"}};
  bool variants = false;
  for (const GroupScore& group : groups_of(results)) {
    const bool mean = group.counted > 0;
    rows.push_back({group.name, mean ? mean_text(group) : "", mean ? value_text(group.mean) : "", mean ? error_text(group.mean) : ""});
    for (const TaskScores* task : group.tasks) {
      add_task(rows, *task);
      variants = variants || !task->in_group_mean;
    }
  }
  std::string text = table_text(rows, "llrrrr") + (variants ? "* not in the mean of its group\n" : "");
  std::set<std::string> told;  // some are of all tasks
  for (const TaskScores& task : results.tasks) {
    for (const std::string& line : task.warnings)
      if (told.insert(line).second) text += "warning: " + line + "\n";
    if (!task.error.empty()) text += fmt::format("error: {}: {}\n", task.name, task.error);
  }
  return text;
}

std::string models_text(const std::vector<Results>& models, const std::vector<std::string>& names, const std::string& alignment,
                        const Rows& before) {
  const std::vector<Column> columns = columns_of(models);
  Rows rows = {names};
  for (const Column& c : columns) rows.front().push_back(c.name);
  for (size_t m = 0; m < models.size(); ++m) {
    const std::vector<GroupScore> groups = groups_of(models[m]);
    std::vector<std::string>& row = rows.emplace_back(before[m]);
    for (const Column& c : columns) row.push_back(cell(models[m], groups, c));
  }
  return table_text(rows, alignment + std::string(columns.size(), 'r'));
}

}  // namespace hlat
