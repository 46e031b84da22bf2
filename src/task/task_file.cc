#include "task/task_file.h"

#include <array>
#include <limits>

#include "base/error.h"
#include "task/metric_rules.h"
#include "task/yaml_map.h"
#include "task/yaml_parts.h"

namespace hlat {
namespace {

constexpr std::array<std::string_view, 5> kKinds = {"choice", "likelihood", "perplexity", "generate", "code"};

Json json_of(const YAML::Node& node) {
  if (node.IsMap()) {
    Json out = Json::object();
    for (const auto& item : node) out[item.first.Scalar()] = json_of(item.second);
    return out;
  }
  if (node.IsSequence()) {
    Json out = Json::array();
    for (const auto& item : node) out.push_back(json_of(item));
    return out;
  }
  if (!node.IsScalar()) return nullptr;
  const bool quoted = node.Tag() == "!";
  int64_t whole = 0;
  bool flag = false;
  if (!quoted && YAML::convert<int64_t>::decode(node, whole)) return whole;
  if (!quoted && YAML::convert<bool>::decode(node, flag)) return flag;
  return node.Scalar();
}

class TaskReader {
 public:
  TaskReader(const YAML::Node& root, const std::string& file, Problems& problems)
      : yaml_(root, file, "task", problems), out_(std::make_unique<TaskFile>()) {
    out_->info.origin = file;
  }

  std::unique_ptr<const TaskFile> run() {
    read_info();
    rewrite_ = std::make_shared<const Rewrite>(read_rewrite(yaml_, "rewrite"));
    read_source(yaml_.map("data"), rewrite_, out_->data);
    if (out_->data.files.empty()) yaml_.problem("data", "`data` names no `file`");
    read_subtasks();
    out_->description = text("description");
    out_->target_delimiter = yaml_.text("target_delimiter", " ");
    switch (out_->info.kind) {
      case TaskKind::choice: read_choice(); break;
      case TaskKind::likelihood: read_likelihood(); break;
      case TaskKind::perplexity: read_perplexity(); break;
      case TaskKind::generate: read_generate(); break;
      case TaskKind::code: read_code(); break;
    }
    read_fewshot();
    read_metrics(yaml_, *out_);
    yaml_.refuse_unknown();
    return std::move(out_);
  }

 private:
  Template text(const std::string& key) { return read_template(yaml_, key, rewrite_); }

  Template required(const std::string& key) {
    if (!yaml_.has(key)) yaml_.problem(key, fmt::format("a task of kind {} needs `{}`", kKinds[static_cast<size_t>(out_->info.kind)], key));
    return text(key);
  }

  void read_info() {
    TaskInfo& info = out_->info;
    info.name = yaml_.required("task");
    info.title = yaml_.text("title", info.name);
    info.group = yaml_.required("group");
    info.in_group_mean = yaml_.flag("in_group_mean", true);
    info.version = yaml_.integer("version", 1, 0);
    if (!yaml_.has("kind")) yaml_.problem("kind", "task has no `kind`");
    info.kind = static_cast<TaskKind>(yaml_.choice("kind", {kKinds.begin(), kKinds.end()}, 0));
  }

  void read_subtasks() {
    const auto& files = out_->data.files;
    out_->info.has_subtasks = !files.empty() && files[0].find('*') != std::string::npos;
    out_->subtasks = yaml_.texts("subtasks");
    if (!out_->subtasks.empty() && !out_->info.has_subtasks)
      yaml_.problem("subtasks", "`subtasks` needs a * in the name of the data's file");
    if (!yaml_.has("shared")) return;
    YamlMap shared = yaml_.map("shared");
    out_->shared.files = shared.texts("file");
    out_->shared.pattern = read_pattern(shared, "pattern");
    if (out_->shared.files.empty() || !out_->shared.pattern) yaml_.problem("shared", "`shared` needs `file` and `pattern`");
    shared.refuse_unknown();
  }

  void read_choice() {
    out_->choices = read_templates(yaml_, "choices", rewrite_);
    out_->contexts = read_templates(yaml_, "contexts", rewrite_);
    if (out_->choices.given() == out_->contexts.given()) yaml_.problem("choices", "a task of kind choice needs `choices` or `contexts`");
    if (out_->contexts.given())
      out_->continuation = required("continuation");
    else
      out_->prompt = text("prompt");
    out_->truths = text("truths");
    if (!out_->truths.given()) out_->gold = required("gold");
  }

  void read_likelihood() {
    out_->prompt = required("prompt");
    required("target");
    out_->target = read_templates(yaml_, "target", rewrite_);
  }

  void read_perplexity() {
    out_->text = required("text");
    out_->counted = text("counted");
  }

  void read_generate() {
    out_->prompt = required("prompt");
    if (!yaml_.has("target")) required("target");
    out_->target = read_templates(yaml_, "target", rewrite_);
    read_generation();
    for (YamlMap& map : yaml_.maps("filters")) {
      AnswerFilter filter;
      filter.name = map.required("name");
      filter.pattern = read_pattern(map, "regex");
      filter.take = map.integer("take", 0, std::numeric_limits<int64_t>::min());
      filter.strip = map.flag("strip", false);
      map.refuse_unknown();
      out_->filters.push_back(std::move(filter));
    }
    if (out_->filters.empty()) out_->filters.emplace_back();
    out_->ignore = read_ignored(yaml_, "ignore");
    out_->ignore_case = yaml_.flag("ignore_case", false);
    out_->ignore_punctuation = yaml_.flag("ignore_punctuation", false);
  }

  void read_code() {
    out_->prompt = required("prompt");
    out_->program = required("program");
    read_generation();
    out_->filters.push_back({.name = yaml_.text("filter_name", "none")});
  }

  void read_generation() {
    GenerationRules& g = out_->generation;
    YamlMap map = yaml_.map("generate");
    g.stop = map.texts("stop");
    g.max_tokens = map.integer("max_tokens", g.max_tokens, 1);
    g.samples = map.integer("samples", 1, 1);
    g.sampling.temperature = map.number("temperature", 0, 0);
    g.sampling.top_k = map.integer("top_k", 0, 0);
    g.sampling.top_p = map.number("top_p", 1, 0);
    g.sampling.min_p = map.number("min_p", 0, 0);
    g.sampling.repetition_penalty = map.number("repetition_penalty", 1, 0);
    if (g.samples > 1 && g.sampling.temperature == 0) map.problem("samples", "several samples need a temperature above 0");
    map.refuse_unknown();
  }

  void read_fewshot() {
    if (!yaml_.has("fewshot")) return;
    if (out_->info.kind == TaskKind::perplexity) return yaml_.problem("fewshot", "a task of kind perplexity has no few-shot examples");
    FewShot& f = out_->fewshot;
    YamlMap map = yaml_.map("fewshot");
    out_->info.shots = map.integer("count", 0, 0);
    f.first = map.choice("order", {"random", "first"}, 0) == 1;
    f.has_questions = map.flag("has_questions", false);
    f.delimiter = map.text("delimiter", f.delimiter);
    f.prompt = read_template(map, "prompt", rewrite_);
    f.target = read_template(map, "target", rewrite_);
    if (map.has("examples")) {
      const YAML::Node list = map.node("examples");
      if (list.IsSequence())
        for (const auto& item : list) f.source.examples.push_back(json_of(item));
      if (f.source.examples.empty()) map.problem("examples", "examples must be a list of records");
    }
    if (map.has("source")) {
      if (map.has("examples")) map.problem("source", "`source` and `examples` exclude each other");
      f.source = out_->data;
      read_source(map.map("source"), rewrite_, f.source);
      if (f.source.files.empty()) map.problem("source", "`source` names no `file`");
    }
    map.refuse_unknown();
  }

  YamlMap yaml_;
  std::unique_ptr<TaskFile> out_;
  SharedRewrite rewrite_;
};

}  // namespace

std::unique_ptr<const TaskFile> read_task_file(const YAML::Node& root, const std::string& file) {
  Problems problems;
  auto out = TaskReader(root, file, problems).run();
  problems.refuse("task file " + file);
  return out;
}

}  // namespace hlat
