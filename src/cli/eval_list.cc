#include "cli/eval_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_text.h"
#include "base/table.h"
#include "cli/print.h"
#include "task/library.h"

namespace hlat {

namespace {

using Json = nlohmann::ordered_json;

TaskOptions options_of(const EvalArgs& args) {
  if (!args.data.empty()) check_data_folder(args.data, "--data");
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

Json info_json(const TaskInfo& info, const EvalArgs& args) {
  return {{"task", info.name},
          {"title", info.title},
          {"group", info.group},
          {"in_group_mean", info.in_group_mean},
          {"version", info.version},
          {"kind", name_of(info.kind)},
          {"num_fewshot", args.shots.value_or(info.shots)},
          {"metrics", metric_names(info)},
          {"headline", metric_names(info)[info.headline]},
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

// What would be right: the request of the right choice, or the text that is compared with the model's.
std::string right_answer(const Task& task, const Example& example) {
  const std::vector<Answer> none(example.requests.size());
  const std::string target = task.judge(example, none, [](const std::string&) { return false; }).target;
  return task.info().kind == TaskKind::choice ? fmt::format("request {}", std::stoul(target) + 1) : target;
}

// The first example as the model gets it.
std::string first_example(const Task& task, TaskOptions options, Json& json) {
  options.limit = 1;
  const std::vector<std::string> subtasks = task.subtasks(options), files = task.files(subtasks.front(), options);
  const std::vector<Example> examples = task.examples(subtasks.front(), options);
  json["subtasks"] = subtasks;
  json["files"] = files;
  std::string text = fmt::format("subtasks       {}\n", subtasks.size());
  for (const std::string& file : files) text += "data           " + file + "\n";
  if (examples.empty()) return text;
  const Example& example = examples.front();
  for (size_t i = 0; i < example.requests.size(); ++i) {
    const TextRequest& r = example.requests[i];
    text += request_text(r, i + 1);
    json["first_example"].push_back({{"context", r.context}, {"continuation", r.continuation}, {"stop", r.stop}});
  }
  json["right_answer"] = right_answer(task, example);
  return text + fmt::format("--- right answer ---\n{}\n", right_answer(task, example));
}

}  // namespace

void list_tasks(const EvalArgs& args) {
  const TaskLibrary library(args.task_dir);
  const bool with_data = !args.data.empty();
  Json json = Json::array();
  std::vector<std::vector<std::string>> rows = {{"task", "title", "group", "kind", "shots", "subtasks", "examples", "metrics", ""}};
  for (const TaskListing& t : library.list(options_of(args))) {
    Json& j = json.emplace_back(info_json(t.info, args));
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
  const TaskOptions options = options_of(args);
  Json json = info_json(task.info(), args);
  std::string text;
  for (const auto& [key, value] : json.items())
    text += fmt::format("{:14} {}\n", key, value.is_string() ? value.get<std::string>() : json_text(value));
  std::vector<std::string> missing;
  if (!args.data.empty()) {
    json["missing"] = missing = task.missing(options);
    if (missing.empty()) text += first_example(task, options, json);
  }
  print_out(args.json ? json_text(json, 2) + "\n" : text);
  if (!missing.empty()) fail<UsageError>("{} is not in {}", fmt::join(missing, ", "), args.data);
}

}  // namespace hlat
