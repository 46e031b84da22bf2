#include "eval/compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "eval/sample_values.h"
#include "eval/significance.h"

namespace hlat {

namespace {

const MetricResult* find_metric(const TaskScores* task, const std::string& key) {
  if (task == nullptr) return nullptr;
  const auto found = std::find_if(task->metrics.begin(), task->metrics.end(), [&](const MetricResult& m) { return m.key == key; });
  return found == task->metrics.end() ? nullptr : &*found;
}

// Samples of a task that two models have answered, by metric.
Difference test_pairs(const SampleValues& first, const SampleValues& other, const std::string& key) {
  Difference d;
  std::vector<double> differences;
  int64_t only_first = 0, only_other = 0;
  bool binary = true;
  for (const auto& [sample, a] : first) {
    const auto b = other.find(sample);
    if (b == other.end() || a.target != b->second.target || !a.values.contains(key) || !b->second.values.contains(key)) continue;
    const double x = a.values.at(key), y = b->second.values.at(key);
    binary = binary && (x == 0 || x == 1) && (y == 0 || y == 1);
    only_first += x > y ? 1 : 0, only_other += y > x ? 1 : 0;
    differences.push_back(x - y);
  }
  if (differences.size() < 2) return d;
  d.pairs = static_cast<int64_t>(differences.size());
  d.test = binary ? TestKind::mcnemar : TestKind::paired;
  d.p = binary ? mcnemar_p(only_first, only_other) : paired_p(differences);
  return d;
}

Difference difference(const std::optional<MetricResult>& first, const std::optional<MetricResult>& other, Difference pairs) {
  if (!first || !other) return {};
  pairs.value = first->value - other->value;
  if (pairs.test != TestKind::none) return pairs;
  pairs.p = unpaired_p(pairs.value, first->error, other->error);
  if (!std::isnan(pairs.p)) pairs.test = TestKind::unpaired;
  return pairs;
}

class Comparing {
 public:
  explicit Comparing(std::span<const Results> models) : models_(models) {
    for (const Results& r : models) {
      comparison_.models.push_back(r.model);
      groups_.push_back(groups_of(r));
    }
    comparison_.wins.resize(models.size() - 1);
  }

  Comparison run() {
    for (const std::string& group : group_names()) {
      add_group(group);
      for (const std::string& task : task_names(group)) add_task(task);
    }
    for (const ComparedRow& row : comparison_.rows) count(row);
    return std::move(comparison_);
  }

 private:
  const GroupScore* find_group(size_t model, const std::string& name) const {
    const auto found = std::find_if(groups_[model].begin(), groups_[model].end(), [&](const GroupScore& g) { return g.name == name; });
    return found == groups_[model].end() ? nullptr : &*found;
  }

  // In the table's order as far as the models agree on it.
  std::vector<std::string> group_names() const {
    std::vector<std::string> names;
    for (const auto& groups : groups_)
      for (const GroupScore& g : groups)
        if (std::find(names.begin(), names.end(), g.name) == names.end()) names.push_back(g.name);
    return names;
  }

  std::vector<std::string> task_names(const std::string& group) const {
    std::vector<std::string> names;
    for (size_t m = 0; m < models_.size(); ++m)
      if (const GroupScore* g = find_group(m, group); g != nullptr)
        for (const TaskScores* t : g->tasks)
          if (t->name != group && std::find(names.begin(), names.end(), t->name) == names.end()) names.push_back(t->name);
    return names;
  }

  void add_group(const std::string& name) {
    ComparedRow row{.name = name, .title = name, .group = true, .metric = {}, .values = {}, .differences = {}};
    bool known = false;
    for (size_t m = 0; m < models_.size(); ++m) {
      const GroupScore* g = find_group(m, name);
      row.values.push_back(g != nullptr && g->counted > 0 ? std::optional(g->mean) : std::nullopt);
      if (row.values.back() && !known) row.metric = *row.values.back(), known = true;
    }
    for (size_t m = 1; m < models_.size(); ++m) {
      // Means of other tasks are no means of the same thing.
      const bool same = same_tasks(find_group(0, name), find_group(m, name), name);
      row.differences.push_back(same ? difference(row.values[0], row.values[m], {}) : Difference{});
    }
    if (known) comparison_.rows.push_back(std::move(row));
  }

  static bool same_tasks(const GroupScore* a, const GroupScore* b, const std::string& group) {
    const auto names = [](const GroupScore& g) {
      std::vector<std::string> all;
      for (const TaskScores* t : g.tasks)
        if (t->in_group_mean) all.push_back(t->name);
      std::sort(all.begin(), all.end());
      return all;
    };
    if (a == nullptr || b == nullptr) return false;
    const std::vector<std::string> published = {group};  // a mean that was published as such
    return names(*a) == names(*b) || names(*a) == published || names(*b) == published;
  }

  void add_task(const std::string& name) {
    std::vector<const TaskScores*> tasks;
    for (const Results& r : models_) tasks.push_back(r.find(name));
    const TaskScores& any = **std::find_if(tasks.begin(), tasks.end(), [](const TaskScores* t) { return t != nullptr; });
    std::vector<SampleValues> samples(models_.size());
    for (size_t m = 0; m < models_.size(); ++m)
      if (tasks[m] != nullptr && !models_[m].folder.empty()) samples[m] = read_sample_values(models_[m].folder, name);
    for (const MetricResult& metric : any.metrics) {
      ComparedRow row{.name = name, .title = any.title, .metric = metric, .values = {}, .differences = {}};
      row.headline = &metric == &any.metrics[any.headline];
      for (const TaskScores* t : tasks) {
        const MetricResult* value = find_metric(t, metric.key);
        row.values.push_back(value != nullptr ? std::optional(*value) : std::nullopt);
      }
      for (size_t m = 1; m < models_.size(); ++m)
        row.differences.push_back(difference(row.values[0], row.values[m], test_pairs(samples[0], samples[m], metric.key)));
      comparison_.rows.push_back(std::move(row));
    }
  }

  void count(const ComparedRow& row) {
    for (size_t m = 1; m < models_.size(); ++m) {
      const Difference& d = row.differences[m - 1];
      if (!row.headline || std::isnan(d.value)) continue;
      // A mean counts where one of both has nothing else.
      if (row.group && models_[0].find(row.name) == nullptr && models_[m].find(row.name) == nullptr) continue;
      WinCount& w = comparison_.wins[m - 1];
      const double better = row.metric.higher_is_better ? d.value : -d.value;
      (better > 0 ? w.wins : better < 0 ? w.losses : w.ties) += 1;
      if (d.p < kClear) (better > 0 ? w.clear_wins : w.clear_losses) += 1;
    }
  }

  std::span<const Results> models_;
  std::vector<std::vector<GroupScore>> groups_;
  Comparison comparison_;
};

}  // namespace

std::string_view name_of(TestKind kind) {
  switch (kind) {
    case TestKind::none: return "";
    case TestKind::mcnemar: return "McNemar";
    case TestKind::paired: return "paired z";
    case TestKind::unpaired: return "z";
  }
  return "";
}

Comparison compare(std::span<const Results> models) {
  HLAT_CHECK(models.size() > 1, "{} models to compare", models.size());
  return Comparing(models).run();
}

}  // namespace hlat
