#include "eval/read_results.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "eval/built_in_tasks.h"

namespace hlat {

namespace {

using Json = nlohmann::ordered_json;

const Json& at(const Json& j, const std::string& key) {
  static const Json none = Json::object();
  return j.is_object() && j.contains(key) ? j.at(key) : none;
}

double number(const Json& j) { return j.is_number() ? j.get<double>() : std::numeric_limits<double>::quiet_NaN(); }

// What the harness does not say of a metric.
bool is_share(const std::string& key) {
  return key.find("perplexity") == std::string::npos && key.find("bits") == std::string::npos &&
         key.find("likelihood") == std::string::npos;
}

bool known_better(const TaskInfo* known, const std::string& key) {
  if (known == nullptr) return true;
  const auto found = std::find_if(known->metrics.begin(), known->metrics.end(), [&](const Metric& m) { return m.key() == key; });
  return found == known->metrics.end() || found->higher_is_better;
}

std::vector<MetricResult> metrics_from(const Json& entry, const Json& better, const Json& shares, const TaskInfo* known) {
  std::vector<MetricResult> all;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_number() || key.find(',') == std::string::npos || key.find("_stderr,") != std::string::npos) continue;
    MetricResult m{.key = key, .value = value, .share = shares.value(key, is_share(key))};
    m.error = number(at(entry, m.error_key()));
    m.higher_is_better = better.value(key.substr(0, key.find(',')), known_better(known, key));
    all.push_back(std::move(m));
  }
  return all;
}

// "pretrained=EleutherAI/pythia-160m,dtype=float32", or the same as an object.
std::string loaded_model(const Json& arguments) {
  if (arguments.is_object()) return arguments.value("pretrained", "");
  constexpr std::string_view kKey = "pretrained=";
  const std::string text = arguments.is_string() ? arguments.get<std::string>() : "";
  const size_t begin = text.find(kKey);
  if (begin == std::string::npos) return "";
  const std::string rest = text.substr(begin + kKey.size());
  return rest.substr(0, rest.find(','));
}

std::string model_name(const Json& j) {
  for (const char* key : {"model", "model_name"})
    if (const Json& name = at(j, key); name.is_string() && !name.get<std::string>().empty()) return name;
  return loaded_model(at(at(j, "config"), "model_args"));
}

class Reader {
 public:
  explicit Reader(const Json& j) : j_(j) {}

  Results read() const {
    if (!at(j_, "results").is_object() || !j_.contains("results")) throw UsageError("it has no \"results\" by task");
    Results results;
    const Json& subtasks = at(j_, "group_subtasks");
    const auto is_subtask = [&](const std::string& name) {
      return std::any_of(subtasks.begin(), subtasks.end(),
                         [&](const Json& list) { return std::find(list.begin(), list.end(), Json(name)) != list.end(); });
    };
    for (const auto& [name, entry] : j_.at("results").items()) try {
        if (!entry.is_object()) fail<UsageError>("\"results\" of {} are not numbers by metric", name);
        if (!is_subtask(name)) results.tasks.push_back(task(name, at(subtasks, name)));
      } catch (const Json::exception&) {
        fail<UsageError>("what it says of {} is not as lm-evaluation-harness or hlat eval write it", name);
      }
    results.model = model_name(j_);
    results.header = j_;
    for (const char* key : {"results", "groups", "group_subtasks", "versions", "n-shot", "higher_is_better", "n-samples", "configs",
                            "table", "errors", "warnings"})
      results.header.erase(key);
    return results;
  }

 private:
  NamedMetrics numbers(const std::string& name, const Json& shares, const TaskInfo* known) const {
    NamedMetrics n;
    n.name = name;
    n.metrics = metrics_from(j_.at("results").at(name), at(at(j_, "higher_is_better"), name), shares, known);
    const Json& samples = at(at(j_, "n-samples"), name);
    n.examples = samples.value("effective", int64_t{0}), n.available = samples.value("original", int64_t{0});
    return n;
  }

  TaskScores task(const std::string& name, const Json& subtasks) const {
    const Json& config = at(at(j_, "configs"), name);
    const Json& shares = at(config, "shares");
    const bool ours = config.contains("headline");
    const TaskInfo* known = ours ? nullptr : built_in_task(name);
    TaskScores t;
    static_cast<NamedMetrics&>(t) = numbers(name, shares, known);
    t.title = name;
    if (ours) t.title = config.at("title"), t.group = config.at("group"), t.in_group_mean = config.at("in_group_mean");
    if (known != nullptr) t.title = known->title, t.group = known->group, t.in_group_mean = known->in_group_mean;
    t.shots = at(j_, "n-shot").value(name, int64_t{0});
    const Json& version = at(at(j_, "versions"), name);
    t.version = version.is_number_integer() ? version.get<int64_t>() : 1;
    const std::string headline = ours               ? config.at("headline").get<std::string>()
                                 : known != nullptr ? known->metrics[known->headline].key()
                                                    : "";
    for (size_t m = 0; m < t.metrics.size(); ++m)
      if (t.metrics[m].key == headline) t.headline = m;
    for (const Json& sub : subtasks)
      if (at(j_, "results").contains(sub)) t.subtasks.push_back(numbers(sub, shares, known));
    t.error = at(j_, "errors").value(name, "");
    t.warnings = at(j_, "warnings").value(name, std::vector<std::string>());
    return t;
  }

  const Json& j_;
};

}  // namespace

Results read_results(const Json& json) { return Reader(json).read(); }

}  // namespace hlat
