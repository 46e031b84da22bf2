#include "eval/compare.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "eval/built_in_tasks.h"

namespace hlat {

namespace {

// Of several models, null where one has not evaluated the task.
using SameTask = std::vector<const TaskScores*>;

const MetricResult* find_metric(const TaskScores& task, const std::string& key) {
  const auto found = std::find_if(task.metrics.begin(), task.metrics.end(), [&](const MetricResult& m) { return m.key == key; });
  return found == task.metrics.end() ? nullptr : &*found;
}

// Tasks without a group, as files of the harness have them, take the place that another model's file gives them.
void agree_on_groups(std::vector<Results>& models) {
  for (Results& r : models)
    for (TaskScores& task : r.tasks)
      for (const Results& other : models) {
        const TaskScores* placed = task.group.empty() ? other.find(task.name) : nullptr;
        if (placed == nullptr || placed->group.empty()) continue;
        task.group = placed->group, task.title = placed->title, task.in_group_mean = placed->in_group_mean;
        for (size_t m = 0; m < task.metrics.size() && !placed->metrics.empty(); ++m)
          if (task.metrics[m].key == placed->metrics[placed->headline].key) task.headline = m;
      }
}

// Of all models; the headline of the first that has numbers leads.
std::vector<MetricResult> metrics_of(const SameTask& tasks) {
  std::vector<MetricResult> all;
  const auto add = [&](const MetricResult& metric) {
    if (std::none_of(all.begin(), all.end(), [&](const MetricResult& m) { return m.key == metric.key; })) all.push_back(metric);
  };
  for (const TaskScores* task : tasks) {
    if (task == nullptr || task->metrics.empty()) continue;
    if (all.empty()) add(task->metrics[task->headline]);
    for (const MetricResult& metric : task->metrics) add(metric);
  }
  if (all.empty()) all.emplace_back();  // it failed everywhere
  return all;
}

Measured measured(const TaskScores* task, const std::string& key) {
  if (task == nullptr) return {};
  const MetricResult* metric = find_metric(*task, key);
  return {.metric = metric != nullptr ? std::optional(*metric) : std::nullopt,
          .examples = task->examples,
          .available = task->available,
          .failed = task->metrics.empty()};
}

std::vector<const TaskScores*> in_mean(const GroupScore& group) {
  std::vector<const TaskScores*> tasks;
  std::copy_if(group.tasks.begin(), group.tasks.end(), std::back_inserter(tasks), [](const TaskScores* t) { return t->in_group_mean; });
  std::sort(tasks.begin(), tasks.end(), [](const TaskScores* a, const TaskScores* b) { return a->name < b->name; });
  return tasks;
}

// published.h: a task with the group's name. Metrics of tasks that were evaluated have filters in their keys.
bool is_published_mean(const GroupScore* group) {
  if (group == nullptr || group->tasks.size() != 1) return false;
  const TaskScores& task = *group->tasks.front();
  return task.name == group->name && task.metrics.size() == 1 && task.metrics.front().key == "mean";
}

// A mean with how many of the built-in tasks of its group it has; that is not known where it has others.
Measured measured(const GroupScore* group) {
  if (group == nullptr || group->counted == 0) return {};
  const std::vector<const TaskScores*> tasks = in_mean(*group);
  const std::vector<std::string> whole = built_in_group(group->name);
  const bool part =
      std::all_of(tasks.begin(), tasks.end(), [&](auto* t) { return std::binary_search(whole.begin(), whole.end(), t->name); });
  return {.metric = group->mean, .examples = part ? std::ssize(tasks) : 0, .available = part ? std::ssize(whole) : 0};
}

bool is_whole(const GroupScore& group) {
  const Measured mean = measured(&group);
  return mean.examples > 0 && !mean.limited();
}

// Means of other tasks, or of other examples, are no means of the same thing.
bool same_thing(const GroupScore& a, const GroupScore& b) {
  if (is_published_mean(&a) || is_published_mean(&b))
    return (is_published_mean(&a) || is_whole(a)) && (is_published_mean(&b) || is_whole(b));
  const std::vector<const TaskScores*> first = in_mean(a), second = in_mean(b);
  return std::equal(first.begin(), first.end(), second.begin(), second.end(), [](auto* x, auto* y) {
    return x->name == y->name && (x->examples == y->examples || x->examples == 0 || y->examples == 0);
  });
}

class Comparing {
 public:
  explicit Comparing(std::span<const Results> models) : models_(models.begin(), models.end()) {
    agree_on_groups(models_);
    for (const Results& r : models_) {
      comparison_.models.push_back(r.model);
      groups_.push_back(groups_of(r));
    }
    comparison_.wins.resize(models.size() - 1);
  }

  Comparison run() {
    for (const std::string& group : group_names()) {
      add_group(group);
      for (const std::string& task : task_names(group))
        if (shown_.insert(task).second) add_task(task);
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
      if (const GroupScore* g = find_group(m, group); g != nullptr && !is_published_mean(g))
        for (const TaskScores* t : g->tasks)
          if (std::find(names.begin(), names.end(), t->name) == names.end()) names.push_back(t->name);
    return names;
  }

  void add_group(const std::string& name) {
    ComparedRow row{.name = name, .title = name, .group = true, .metric = {}, .values = {}, .differences = {}};
    for (size_t m = 0; m < models_.size(); ++m) {
      row.values.push_back(measured(find_group(m, name)));
      if (row.values.back().metric && row.metric.key.empty()) row.metric = *row.values.back().metric;
    }
    for (size_t m = 1; m < models_.size(); ++m) {
      const GroupScore *first = find_group(0, name), *other = find_group(m, name);
      Difference d;
      if (first != nullptr && other != nullptr && same_thing(*first, *other)) d = difference(row.values[0], row.values[m]);
      // Errors that were published with means are means too: those of the tasks.
      if (is_published_mean(first) || is_published_mean(other)) d = {.value = d.value};
      row.differences.push_back(d);
    }
    comparison_.rows.push_back(std::move(row));
  }

  void add_task(const std::string& name) {
    SameTask tasks;
    std::vector<SampleValues> samples(models_.size());
    for (size_t m = 0; m < models_.size(); ++m) {
      tasks.push_back(models_[m].find(name));
      if (tasks[m] != nullptr && !models_[m].folder.empty()) samples[m] = read_sample_values(models_[m].folder, *tasks[m]);
    }
    const TaskScores& any = **std::find_if(tasks.begin(), tasks.end(), [](const TaskScores* t) { return t != nullptr; });
    bool headline = true;
    for (const MetricResult& metric : metrics_of(tasks)) {
      ComparedRow row{.name = name, .title = any.title, .headline = headline, .metric = metric, .values = {}, .differences = {}};
      for (const TaskScores* t : tasks) row.values.push_back(measured(t, metric.key));
      for (size_t m = 1; m < models_.size(); ++m)
        row.differences.push_back(difference(row.values[0], row.values[m], samples[0], samples[m]));
      comparison_.rows.push_back(std::move(row));
      headline = false;
    }
  }

  void count(const ComparedRow& row) {
    for (size_t m = 1; m < models_.size(); ++m) {
      const Difference& d = row.differences[m - 1];
      if (!row.headline || std::isnan(d.value)) continue;
      // A mean counts where one of both has nothing else.
      if (row.group && !is_published_mean(find_group(0, row.name)) && !is_published_mean(find_group(m, row.name))) continue;
      WinCount& w = comparison_.wins[m - 1];
      const double better = row.metric.higher_is_better ? d.value : -d.value;
      (better > 0 ? w.wins : better < 0 ? w.losses : w.ties) += 1;
      w.tested += d.test != TestKind::none ? 1 : 0;
      if (d.p < kClear) (better > 0 ? w.clear_wins : w.clear_losses) += 1;
    }
  }

  std::vector<Results> models_;
  std::vector<std::vector<GroupScore>> groups_;
  std::set<std::string> shown_;  // tasks; one may be in two groups
  Comparison comparison_;
};

}  // namespace

Comparison compare(std::span<const Results> models) {
  HLAT_CHECK(models.size() > 1, "{} models to compare", models.size());
  return Comparing(models).run();
}

}  // namespace hlat
