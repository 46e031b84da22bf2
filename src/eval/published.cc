#include "eval/published.h"

#include <fmt/ranges.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/nearest.h"
#include "task/text.h"

namespace hlat {

namespace {

constexpr double kUnknownError = std::numeric_limits<double>::quiet_NaN();
constexpr double kPercent = 100;

TaskScores task(const std::string& name, const std::string& title, const std::string& group) {
  TaskScores t;
  t.name = name, t.title = title, t.group = group;
  return t;
}

MetricResult metric(const std::string& key, const nlohmann::json& percent, double error = kUnknownError) {
  return {.key = key, .value = percent.get<double>() / kPercent, .error = error / kPercent};
}

Results model_of(const nlohmann::json& j) {
  Results r;
  r.model = j.at("model").get<std::string>() + " (published)";
  for (const auto& [group, value] : j.at("groups").items()) {
    TaskScores t = task(group, group, group);
    t.metrics.push_back(metric("mean", value, j.value("errors", nlohmann::json::object()).value(group, kUnknownError)));
    r.tasks.push_back(std::move(t));
  }
  const auto code = [&](const std::string& name, const std::string& title, const std::string& key, const nlohmann::json& value) {
    if (value.is_null()) return;
    TaskScores t = task(name, title, "Code");
    t.in_group_mean = name == "humaneval";
    t.metrics.push_back(metric(key, value));
    r.tasks.push_back(std::move(t));
  };
  code("humaneval", "HumanEval", "pass@1,create_test", j.at("humaneval").at(0));
  code("humaneval_sampled", "HumanEval, sampled", "pass@10,create_test", j.at("humaneval").at(1));
  const auto single = [&](const std::string& name, const std::string& title, const std::string& key, bool higher) {
    if (!j.contains(name)) return;
    TaskScores t = task(name, title, "truth and bias");
    t.metrics.push_back(metric(key, j[name]));
    t.metrics.back().higher_is_better = higher;
    r.tasks.push_back(std::move(t));
  };
  single("crows_pairs_english", "CrowS-Pairs, English", "pct_stereotype,none", false);
  single("crows_pairs_french", "CrowS-Pairs, French", "pct_stereotype,none", false);
  single("truthfulqa_mc1", "TruthfulQA mc1", "acc,none", true);
  single("truthfulqa_mc2", "TruthfulQA mc2", "acc,none", true);
  return r;
}

}  // namespace

std::vector<Results> published_results() {
  std::vector<Results> all;
  const nlohmann::json j = nlohmann::json::parse(published_text());
  for (const nlohmann::json& model : j.at("models")) all.push_back(model_of(model));
  return all;
}

Results published_result(const std::string& model) {
  const nlohmann::json all = nlohmann::json::parse(published_text());
  std::vector<std::string> names;
  for (const nlohmann::json& j : all.at("models")) {
    names.push_back(j.at("model"));
    if (lower(names.back()) == lower(model)) return model_of(j);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view best = nearest(model, views);
  fail<UsageError>("published:{}: there are no published numbers of it; there are those of {}{}", model, fmt::join(names, ", "),
                   best.empty() ? "" : fmt::format("; did you mean {}?", best));
}

}  // namespace hlat
