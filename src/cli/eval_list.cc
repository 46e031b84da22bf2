#include "cli/eval_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_text.h"
#include "cli/print.h"
#include "cli/table.h"
#include "task/library.h"

namespace hlat {

namespace {

using Json = nlohmann::ordered_json;

TaskOptions options_of(const EvalArgs& args) {
  return {.data = args.data,
          .limit = args.limit.value_or(0),
          .shots = args.shots,
          .fewshot_seed = args.fewshot_seed,
          .sampling_seed = args.seed};
}

const char* name_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::choice: return "choice";
    case TaskKind::likelihood: return "likelihood";
    case TaskKind::perplexity: return "perplexity";
    case TaskKind::generate: return "generate";
    case TaskKind::code: return "code";
  }
  return "";
}

std::vector<std::string> metric_names(const TaskInfo& info) {
  std::vector<std::string> names;
  for (const Metric& m : info.metrics) names.push_back(m.filter == "none" ? m.name : m.name + " " + m.filter);
  return names;
}

Json info_json(const TaskInfo& info) {
  return {{"task", info.name},       {"title", info.title},        {"group", info.group},       {"in_group_mean", info.in_group_mean},
          {"version", info.version}, {"kind", name_of(info.kind)}, {"num_fewshot", info.shots}, {"metrics", metric_names(info)},
          {"origin", info.origin}};
}

std::string state_text(const TaskListing& t) {
  if (!t.missing.empty())
    return "missing: " + t.missing.front() + (t.missing.size() > 1 ? fmt::format(" and {} more", t.missing.size() - 1) : "");
  return t.problem.empty() ? "" : "cannot be read: " + t.problem.substr(0, t.problem.find('\n'));
}

std::string request_text(const TextRequest& r, size_t number) {
  std::string text = fmt::format("--- request {}, context ---\n{}\n", number, r.context);
  if (r.kind == AskKind::generate)
    return text + fmt::format("--- at most {} new tokens, up to one of {} ---\n", r.max_tokens, Json(r.stop).dump());
  return text + fmt::format("--- continuation ---\n{}\n", r.continuation);
}

}  // namespace

void list_tasks(const EvalArgs& args) {
  const TaskLibrary library(args.task_dir);
  const bool with_data = !args.data.empty();
  Json json = Json::array();
  std::vector<std::vector<std::string>> rows = {{"task", "title", "group", "kind", "shots", "subtasks", "examples", "metrics", ""}};
  for (const TaskListing& t : library.list(options_of(args))) {
    Json& j = json.emplace_back(info_json(t.info));
    const bool known = with_data && t.missing.empty() && t.problem.empty();
    if (with_data) j.update({{"subtasks", t.subtasks}, {"examples", t.examples}, {"missing", t.missing}, {"problem", t.problem}});
    rows.push_back({t.info.name, t.info.title, t.info.group + (t.info.in_group_mean ? "" : " *"), name_of(t.info.kind),
                    std::to_string(args.shots.value_or(t.info.shots)), known ? std::to_string(t.subtasks) : "",
                    known ? std::to_string(t.examples) : "", fmt::format("{}", fmt::join(metric_names(t.info), ", ")),
                    with_data ? state_text(t) : ""});
  }
  if (args.json) return print_out(json_text(json, 2) + "\n");
  print_out(table_text(rows, "llllrrrll") + "* not in the mean of its group\n" +
            (with_data ? "" : "--data DIR shows how many examples there are, and which data is missing\n"));
}

void show_task(const EvalArgs& args) {
  TaskLibrary library(args.task_dir);
  const std::vector<const Task*> found = library.find({args.show});
  if (found.size() != 1) fail<UsageError>("--show {}: a group of {} tasks; name one of them", args.show, found.size());
  const Task& task = *found.front();
  const TaskInfo& info = task.info();
  const TaskOptions options = options_of(args);
  Json json = info_json(info);
  std::string text;
  for (const auto& [key, value] : json.items())
    text += fmt::format("{:14} {}\n", key, value.is_string() ? value.get<std::string>() : json_text(value));
  if (!args.data.empty()) {
    const std::vector<std::string> missing = task.missing(options);
    for (const std::string& file : missing) text += "missing        " + file + "\n";
    json["missing"] = missing;
    if (missing.empty()) {
      TaskOptions first = options;
      first.limit = 1;
      const std::vector<std::string> subtasks = task.subtasks(first);
      const std::vector<Example> examples = task.examples(subtasks.front(), first);
      json["subtasks"] = subtasks;
      text += fmt::format("subtasks       {}\n", subtasks.size());
      for (size_t i = 0; !examples.empty() && i < examples.front().requests.size(); ++i) {
        const TextRequest& r = examples.front().requests[i];
        text += request_text(r, i + 1);
        json["first_example"].push_back({{"context", r.context}, {"continuation", r.continuation}, {"stop", r.stop}});
      }
    }
  }
  print_out(args.json ? json_text(json, 2) + "\n" : text);
}

}  // namespace hlat
