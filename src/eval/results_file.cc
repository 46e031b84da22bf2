#include "eval/results_file.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "data/reader/new_file.h"

namespace hlat {

namespace {

using Json = nlohmann::ordered_json;

// "acc,none" -> "acc_stderr,none"
std::string error_key(const std::string& key) {
  const size_t comma = std::min(key.find(','), key.size());
  return key.substr(0, comma) + "_stderr" + key.substr(comma);
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json("N/A"); }
double number(const Json& j) { return j.is_number() ? j.get<double>() : std::numeric_limits<double>::quiet_NaN(); }

Json metrics_json(const std::string& alias, const std::vector<MetricResult>& metrics) {
  Json j{{"alias", alias}};
  for (const MetricResult& m : metrics) {
    j[m.key] = number(m.value);
    j[error_key(m.key)] = number(m.error);
  }
  return j;
}

Json better_json(const std::vector<MetricResult>& metrics) {
  Json j = Json::object();
  for (const MetricResult& m : metrics) j[m.key.substr(0, m.key.find(','))] = m.higher_is_better;
  return j;
}

// As the harness names them: mmlu_astronomy.
std::string full_name(const TaskScores& task, const NamedMetrics& sub) {
  return sub.name.starts_with(task.name) ? sub.name : task.name + "_" + sub.name;
}

void put_numbers(Json& j, const std::string& name, const std::string& alias, const NamedMetrics& numbers, const TaskScores& task) {
  j["results"][name] = metrics_json(alias, numbers.metrics);
  j["versions"][name] = task.version;
  j["n-shot"][name] = task.shots;
  j["higher_is_better"][name] = better_json(numbers.metrics);
  j["n-samples"][name] = {{"original", numbers.available}, {"effective", numbers.examples}};
}

// How many of each subtask at most: what its largest part that is not whole has. None: all of them.
Json limit_json(const TaskScores& task) {
  int64_t limit = 0;
  const auto add = [&](const NamedMetrics& n) {
    if (n.examples < n.available) limit = std::max(limit, n.examples);
  };
  if (task.subtasks.empty()) add(task);
  for (const NamedMetrics& sub : task.subtasks) add(sub);
  return limit > 0 ? Json(limit) : Json();
}

void put_task(Json& j, const TaskScores& task) {
  put_numbers(j, task.name, task.title, task, task);
  if (!task.subtasks.empty()) j["groups"][task.name] = j["results"][task.name];
  for (const NamedMetrics& sub : task.subtasks) {
    put_numbers(j, full_name(task, sub), sub.name, sub, task);
    j["group_subtasks"][task.name].push_back(full_name(task, sub));
  }
  Json shares = Json::object();
  for (const MetricResult& m : task.metrics) shares[m.key] = m.share;
  j["configs"][task.name] = {{"task", task.name},
                             {"title", task.title},
                             {"group", task.group},
                             {"in_group_mean", task.in_group_mean},
                             {"num_fewshot", task.shots},
                             {"limit", limit_json(task)},
                             {"headline", task.metrics.empty() ? "" : task.metrics[task.headline].key},
                             {"shares", shares},
                             {"metadata", {{"version", task.version}}}};
  if (!task.error.empty()) j["errors"][task.name] = task.error;
  if (!task.warnings.empty()) j["warnings"][task.name] = task.warnings;
}

Json table_json(const Results& results) {
  Json table = Json::array();
  for (const GroupScore& group : groups_of(results)) {
    Json names = Json::array();
    for (const TaskScores* t : group.tasks) names.push_back(t->name);
    table.push_back({{"group", group.name}, {"tasks", names}, {"counted", group.counted}});
    if (group.counted > 0) table.back().update({{"value", group.mean.value}, {"stderr", number(group.mean.error)}});
  }
  return table;
}

// What the harness does not say of a metric.
bool is_share(const std::string& key) {
  return key.find("perplexity") == std::string::npos && key.find("bits") == std::string::npos &&
         key.find("likelihood") == std::string::npos;
}

std::vector<MetricResult> metrics_from(const Json& entry, const Json& better, const Json& shares) {
  std::vector<MetricResult> all;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_number() || key.find(',') == std::string::npos || key.find("_stderr,") != std::string::npos) continue;
    all.push_back({.key = key,
                   .value = value,
                   .error = number(entry.value(error_key(key), Json())),
                   .higher_is_better = better.value(key.substr(0, key.find(',')), true),
                   .share = shares.value(key, is_share(key))});
  }
  return all;
}

class Reader {
 public:
  explicit Reader(const Json& j) : j_(j) {}

  Results read() const {
    Results results;
    const Json& subtasks = at(j_, "group_subtasks");
    const auto is_subtask = [&](const std::string& name) {
      return std::any_of(subtasks.begin(), subtasks.end(),
                         [&](const Json& list) { return std::find(list.begin(), list.end(), Json(name)) != list.end(); });
    };
    for (const auto& [name, entry] : j_.at("results").items())
      if (!is_subtask(name)) results.tasks.push_back(task(name, at(subtasks, name)));
    results.header = j_;
    for (const char* key : {"results", "groups", "group_subtasks", "versions", "n-shot", "higher_is_better", "n-samples", "configs",
                            "table", "errors", "warnings"})
      results.header.erase(key);
    return results;
  }

 private:
  static const Json& at(const Json& j, const std::string& key) {
    static const Json none = Json::object();
    return j.is_object() && j.contains(key) ? j.at(key) : none;
  }

  NamedMetrics numbers(const std::string& name, const Json& shares) const {
    NamedMetrics n;
    n.name = name;
    n.metrics = metrics_from(j_.at("results").at(name), at(at(j_, "higher_is_better"), name), shares);
    const Json& samples = at(at(j_, "n-samples"), name);
    n.examples = samples.value("effective", int64_t{0}), n.available = samples.value("original", int64_t{0});
    return n;
  }

  TaskScores task(const std::string& name, const Json& subtasks) const {
    const Json& config = at(at(j_, "configs"), name);
    const Json& shares = at(config, "shares");
    TaskScores t;
    static_cast<NamedMetrics&>(t) = numbers(name, shares);
    t.title = config.value("title", name), t.group = config.value("group", "");
    t.in_group_mean = config.value("in_group_mean", true);
    t.shots = at(j_, "n-shot").value(name, int64_t{0});
    const Json& version = at(j_, "versions");
    t.version = version.contains(name) && version[name].is_number_integer() ? version[name].get<int64_t>() : 1;
    const std::string headline = config.value("headline", "");
    for (size_t m = 0; m < t.metrics.size(); ++m)
      if (t.metrics[m].key == headline) t.headline = m;
    for (const Json& sub : subtasks)
      if (at(j_, "results").contains(sub)) t.subtasks.push_back(numbers(sub, shares));
    t.error = at(j_, "errors").value(name, "");
    t.warnings = at(j_, "warnings").value(name, std::vector<std::string>());
    return t;
  }

  const Json& j_;
};

}  // namespace

Json to_json(const Results& results) {
  Json j;
  for (const char* key : {"results", "groups", "group_subtasks", "configs", "versions", "n-shot", "higher_is_better", "n-samples"})
    j[key] = Json::object();
  for (const TaskScores& task : results.tasks) put_task(j, task);
  j["table"] = table_json(results);
  j["model"] = results.model;
  if (results.header.is_object()) j.update(results.header);
  return j;
}

void save_results(const Results& results, const std::filesystem::path& file) {
  reader::NewFile fresh(file.string());
  fresh.write(json_text(to_json(results), 2) + "\n");
  fresh.publish(file.string());
}

Results load_results(const std::filesystem::path& given) {
  const std::filesystem::path file = std::filesystem::is_directory(given) ? given / kResultsName : given;
  std::ifstream in(file);
  if (!in) fail<UsageError>("{}: cannot be read; results are in the {} of an evaluation's folder", file.string(), kResultsName);
  try {
    const Json j = Json::parse(in);
    Results results = Reader(j).read();
    results.folder = file.parent_path();
    const Json& config = j.value("config", Json::object());
    results.model = j.value("model", config.is_object() ? config.value("model", file.string()) : file.string());
    return results;
  } catch (const Json::exception& e) {
    fail<UsageError>("{}: is not a file of results: {}", file.string(), e.what());
  }
}

}  // namespace hlat
