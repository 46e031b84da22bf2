#include "task/task_file.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "task/metric_rules.h"
#include "task/yaml_map.h"

namespace hlat {
namespace {

constexpr std::array<std::string_view, 5> kKinds = {"choice", "likelihood", "perplexity", "generate", "code"};
constexpr std::array<std::string_view, 5> kFormats = {"by_name", "jsonl", "json", "csv", "text"};

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
    read_rewrite();
    data(yaml_.map("data"), out_->data);
    if (out_->data.files.empty()) yaml_.problem("data", "`data` names no `file`");
    read_subtasks();
    out_->description = text_template("description");
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
  // Compiles something and makes a problem at the key of what is wrong with it.
  template <class Make>
  auto compiled(YamlMap& yaml, const std::string& key, const Make& make) -> decltype(make()) {
    try {
      return make();
    } catch (const Error& e) {
      yaml.problem(key, fmt::format("{}: {}", key, e.what()));
      return {};
    }
  }

  Template text_template(YamlMap& yaml, const std::string& key) {
    return compiled(yaml, key, [&] { return Template(yaml.text(key), rewrite_); });
  }
  Template text_template(const std::string& key) { return text_template(yaml_, key); }

  Template required(const std::string& key) {
    if (!yaml_.has(key)) yaml_.problem(key, fmt::format("a task of kind {} needs `{}`", kKinds[static_cast<size_t>(out_->info.kind)], key));
    return text_template(key);
  }

  TemplateList templates(const std::string& key) {
    const YAML::Node node = yaml_.node(key);
    return compiled(yaml_, key, [&] {
      if (!node.IsDefined()) return TemplateList();
      if (node.IsScalar()) return TemplateList(Template(node.Scalar(), rewrite_));
      std::vector<Template> items;
      for (const std::string& text : yaml_.texts(key)) items.emplace_back(text, rewrite_);
      return TemplateList(std::move(items));
    });
  }

  std::shared_ptr<const Pattern> pattern(YamlMap& yaml, const std::string& key) {
    return compiled(yaml, key, [&]() -> std::shared_ptr<const Pattern> {
      const std::string text = yaml.text(key);
      return text.empty() ? nullptr : std::make_shared<const Pattern>(text);
    });
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

  // Pairs of a pattern and its replacement.
  void read_rewrite() {
    Rewrite rewrite;
    const YAML::Node list = yaml_.node("rewrite");
    if (list.IsDefined() && !list.IsSequence()) yaml_.problem("rewrite", "rewrite must be a list of [pattern, replacement]");
    for (const auto& pair : list) {
      if (!pair.IsSequence() || pair.size() != 2 || !pair[0].IsScalar() || !pair[1].IsScalar()) {
        yaml_.problem(pair, "an item of rewrite must be [pattern, replacement]");
        continue;
      }
      try {
        rewrite.add(pair[0].Scalar(), pair[1].Scalar());
      } catch (const Error& e) {
        yaml_.problem(pair, e.what());
      }
    }
    rewrite_ = std::make_shared<const Rewrite>(std::move(rewrite));
  }

  // What `out` holds already are the fallbacks: few-shot files are written like the data unless they say otherwise.
  void data(YamlMap yaml, DataSource& out) {
    out.files = yaml.texts("file");
    for (const std::string& name : out.files)
      if (std::count(name.begin(), name.end(), '*') > 1 || name.rfind('*') < name.rfind('/') + 1)
        yaml.problem("file", fmt::format("{}: one * in the last part of the name stands for the subtask, no other", name));
    out.format = static_cast<RecordFormat>(yaml.choice("format", {kFormats.begin(), kFormats.end()}, static_cast<size_t>(out.format)));
    if (yaml.has("columns")) out.columns = yaml.texts("columns");
    const std::string separator = yaml.text("separator", std::string(1, out.separator));
    if (separator.size() == 1)
      out.separator = separator[0];
    else
      yaml.problem("separator", "separator must be one character");
    if (yaml.has("list")) out.list = yaml.texts("list");
    if (yaml.has("pattern")) out.pattern = pattern(yaml, "pattern");
    if (yaml.has("record_start")) out.record_start = pattern(yaml, "record_start");
    if (out.pattern && out.record_start) yaml.problem("pattern", "`pattern` and `record_start` exclude each other");
    out.where = text_template(yaml, "where");
    read_labels(yaml, out);
    yaml.refuse_unknown();
  }

  static void read_labels(YamlMap& yaml, DataSource& out) {
    if (!yaml.has("labels")) return;
    YamlMap labels = yaml.map("labels");
    out.labels = labels.texts("file");
    if (out.labels.empty()) labels.problem("file", "`labels` names no `file`");
    out.label_field = labels.required("field");
    labels.refuse_unknown();
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
    out_->shared.pattern = pattern(shared, "pattern");
    if (out_->shared.files.empty() || !out_->shared.pattern) yaml_.problem("shared", "`shared` needs `file` and `pattern`");
    shared.refuse_unknown();
  }

  void read_choice() {
    out_->choices = templates("choices");
    out_->contexts = templates("contexts");
    if (out_->choices.given() == out_->contexts.given()) yaml_.problem("choices", "a task of kind choice needs `choices` or `contexts`");
    if (out_->contexts.given())
      out_->continuation = required("continuation");
    else
      out_->prompt = text_template("prompt");
    out_->truths = text_template("truths");
    if (!out_->truths.given()) out_->gold = required("gold");
  }

  void read_likelihood() {
    out_->prompt = required("prompt");
    required("target");
    out_->target = templates("target");
  }

  void read_perplexity() {
    out_->text = required("text");
    out_->counted = text_template("counted");
  }

  void read_generate() {
    out_->prompt = required("prompt");
    if (!yaml_.has("target")) required("target");
    out_->target = templates("target");
    read_generation();
    for (YamlMap& map : yaml_.maps("filters")) {
      AnswerFilter filter;
      filter.name = map.required("name");
      filter.pattern = pattern(map, "regex");
      filter.take = map.integer("take", 0, std::numeric_limits<int64_t>::min());
      filter.strip = map.flag("strip", false);
      map.refuse_unknown();
      out_->filters.push_back(std::move(filter));
    }
    if (out_->filters.empty()) out_->filters.emplace_back();
    for (const std::string& text : yaml_.texts("ignore")) {
      try {
        out_->ignore.add(text, "");
      } catch (const Error& e) {
        yaml_.problem("ignore", e.what());
      }
    }
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
    f.delimiter = map.text("delimiter", f.delimiter);
    f.prompt = text_template(map, "prompt");
    f.target = text_template(map, "target");
    if (map.has("examples")) {
      const YAML::Node list = map.node("examples");
      for (const auto& item : list) f.source.examples.push_back(json_of(item));
      if (f.source.examples.empty()) map.problem("examples", "examples must be a list of records");
    }
    if (map.has("source")) {
      if (map.has("examples")) map.problem("source", "`source` and `examples` exclude each other");
      f.source = out_->data;
      f.source.labels.clear();
      data(map.map("source"), f.source);
      if (f.source.files.empty()) map.problem("source", "`source` names no `file`");
    }
    map.refuse_unknown();
  }

  YamlMap yaml_;
  std::unique_ptr<TaskFile> out_;
  std::shared_ptr<const Rewrite> rewrite_;
};

}  // namespace

std::unique_ptr<const TaskFile> read_task_file(const YAML::Node& root, const std::string& file) {
  Problems problems;
  auto out = TaskReader(root, file, problems).run();
  problems.refuse("task file " + file);
  return out;
}

}  // namespace hlat
