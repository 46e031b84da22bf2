#include "eval/results_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "config/nearest_file.h"
#include "data/reader/new_file.h"
#include "eval/read_results.h"

namespace hlat {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json("N/A"); }

Json metrics_json(const std::string& alias, const std::vector<MetricResult>& metrics) {
  Json j{{"alias", alias}};
  for (const MetricResult& m : metrics) {
    j[m.key] = number(m.value);
    j[m.error_key()] = number(m.error);
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

// For one who gave a run folder: which evaluations it has.
std::string evaluations_text(const fs::path& given) {
  constexpr size_t kShown = 4;
  std::vector<std::string> found;
  for (const fs::path& folder : {given, given / "eval"}) {
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
      if (fs::exists(entry.path() / kResultsName, none)) found.push_back(entry.path().string());
  }
  if (found.empty()) return fmt::format("results are in the {} of an evaluation's folder", kResultsName);
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) > std::pair(b.size(), b);  // later steps first
  });
  const std::string more = found.size() > kShown ? fmt::format(" and {} more", found.size() - kShown) : "";
  found.resize(std::min(found.size(), kShown));
  return fmt::format("results are in {}{}", fmt::join(found, ", "), more);
}

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

void save_results(const Results& results, const fs::path& file) {
  reader::NewFile fresh(file.string());
  fresh.write(json_text(to_json(results), 2) + "\n");
  fresh.publish(file.string());
}

Results load_results(const fs::path& given) {
  const bool folder = fs::is_directory(given);
  const fs::path file = folder ? given / kResultsName : given;
  std::ifstream in(file);
  if (!in) {
    const std::string hint = folder ? "" : file_hint(file.string());
    fail<UsageError>("{}: cannot be read{}", file.string(), hint.empty() ? "; " + evaluations_text(given) : hint);
  }
  const Json j = Json::parse(in, nullptr, false);
  try {
    if (j.is_discarded()) throw UsageError("it is no JSON");
    Results results = read_results(j);
    if (results.model.empty()) results.model = file.string();
    if (file.filename() == kResultsName) results.folder = file.parent_path();  // samples beside any other file need not be its own
    return results;
  } catch (const UsageError& e) {
    fail<UsageError>("{}: is not a file of results: {}", file.string(), e.what());
  }
}

}  // namespace hlat
