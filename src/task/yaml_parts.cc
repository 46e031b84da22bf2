#include "task/yaml_parts.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace hlat {
namespace {

constexpr std::array<std::string_view, 5> kFormats = {"by_name", "jsonl", "json", "csv", "text"};  // in the order of RecordFormat

template <class Make>
auto compiled(YamlMap& yaml, const std::string& key, const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (const Error& e) {
    yaml.problem(key, fmt::format("{}: {}", key, e.what()));
    return {};
  }
}

void read_labels(YamlMap& yaml, DataSource& out) {
  out.labels.clear();
  if (!yaml.has("labels")) return;
  YamlMap labels = yaml.map("labels");
  out.labels = labels.texts("file");
  if (out.labels.empty()) labels.problem("file", "`labels` names no `file`");
  out.label_field = labels.required("field");
  labels.refuse_unknown();
}

}  // namespace

Template read_template(YamlMap& yaml, const std::string& key, const SharedRewrite& rewrite) {
  return compiled(yaml, key, [&] { return Template(yaml.text(key), rewrite); });
}

TemplateList read_templates(YamlMap& yaml, const std::string& key, const SharedRewrite& rewrite) {
  const YAML::Node node = yaml.node(key);
  return compiled(yaml, key, [&] {
    if (!node.IsDefined()) return TemplateList();
    if (node.IsScalar()) return TemplateList(Template(node.Scalar(), rewrite));
    std::vector<Template> items;
    for (const std::string& text : yaml.texts(key)) items.emplace_back(text, rewrite);
    return TemplateList(std::move(items));
  });
}

std::shared_ptr<const Pattern> read_pattern(YamlMap& yaml, const std::string& key) {
  return compiled(yaml, key, [&]() -> std::shared_ptr<const Pattern> {
    const std::string text = yaml.text(key);
    return text.empty() ? nullptr : std::make_shared<const Pattern>(text);
  });
}

Rewrite read_rewrite(YamlMap& yaml, const std::string& key) {
  Rewrite out;
  const YAML::Node list = yaml.node(key);
  if (!list.IsDefined()) return out;
  if (!list.IsSequence()) {
    yaml.problem(key, fmt::format("{} must be a list of [pattern, replacement]", key));
    return out;
  }
  for (const auto& pair : list) {
    if (!pair.IsSequence() || pair.size() != 2 || !pair[0].IsScalar() || !pair[1].IsScalar()) {
      yaml.problem(pair, fmt::format("an item of {} must be [pattern, replacement]", key));
      continue;
    }
    try {
      out.add(pair[0].Scalar(), pair[1].Scalar());
    } catch (const Error& e) {
      yaml.problem(pair, e.what());
    }
  }
  return out;
}

Rewrite read_ignored(YamlMap& yaml, const std::string& key) {
  return compiled(yaml, key, [&] {
    Rewrite out;
    for (const std::string& text : yaml.texts(key)) out.add(text, "");
    return out;
  });
}

void read_source(YamlMap yaml, const SharedRewrite& rewrite, DataSource& out) {
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
  if (yaml.has("pattern")) out.pattern = read_pattern(yaml, "pattern");
  if (yaml.has("record_start")) out.record_start = read_pattern(yaml, "record_start");
  if (out.pattern && out.record_start) yaml.problem("pattern", "`pattern` and `record_start` exclude each other");
  out.where = read_template(yaml, "where", rewrite);
  read_labels(yaml, out);
  yaml.refuse_unknown();
}

}  // namespace hlat
