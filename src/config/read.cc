#include "config/read.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "config/fields.h"
#include "config/nearest.h"

namespace hlat {
namespace {

constexpr size_t kMaxBytes = 1 << 20;  // a config is a page; a mistaken path may be endless

int line_of(const YAML::Mark& mark) { return mark.line + 1; }  // marks count from 0 and are -1 where unknown

// Returns why the file cannot be read, or nothing and its text.
std::string slurp(const std::string& path, std::string& text) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return std::strerror(errno);
  text.resize(kMaxBytes + 1);
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get())) return std::strerror(errno);
  return text.size() > kMaxBytes ? "larger than 1 MiB, not a config" : "";
}

std::string kind_of(const YAML::Node& node) {
  if (node.IsSequence()) return "(a list)";
  if (node.IsMap()) return "(a map)";
  return "(nothing)";
}

// Where a second document starts, if one does. YAML::Load would ignore it, and YAML::LoadAll never returns when the text
// goes on with a token that fits nowhere, such as a comma: it sees empty documents there without end.
std::optional<YAML::Mark> second_document(const std::string& text) {
  struct Starts : YAML::EventHandler {
    YAML::Mark last;
    void OnDocumentStart(const YAML::Mark& mark) override { last = mark; }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
    void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
    void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
    void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
    void OnMapEnd() override {}
  } starts;
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  if (!parser.HandleNextDocument(starts) || !parser.HandleNextDocument(starts)) return std::nullopt;
  return starts.last;
}

class YamlReader {
 public:
  YamlReader(const std::string& path, Reading& out) : path_(path), out_(out) {}

  void read_root(const YAML::Node& root) {
    if (root.IsNull()) return;
    if (!root.IsMap()) {
      problem(root.Mark(), fmt::format("must hold sections such as `{}:`", all_sections().front().name));
      out_.complete = false;
      return;
    }
    std::map<std::string, int> seen;
    for (const auto& item : root) {
      std::string name;
      if (first_time(item.first, "section", "", seen, name)) read_section(name, item.first, item.second);
    }
  }

  void problem(const YAML::Mark& mark, std::string text) {
    out_.problems.push_back({{Origin::Kind::file, path_, line_of(mark)}, std::move(text)});
  }

 private:
  void read_section(const std::string& section, const YAML::Node& at, const YAML::Node& content) {
    bool known = false;
    for (const Section& s : all_sections()) known = known || s.name == section;
    if (!known) return problem(at.Mark(), fmt::format("{}: {}", section, unknown_section(section)));
    if (content.IsNull()) return;  // all its keys are commented out
    if (!content.IsMap()) {
      const std::string given = content.IsScalar() ? content.Scalar() : kind_of(content);
      return problem(at.Mark(), fmt::format("{} = {}: must be a section of `key: value` lines", section, given));
    }
    std::map<std::string, int> seen;
    for (const auto& item : content) {
      std::string name;
      if (!first_time(item.first, "key", section + ".", seen, name)) continue;
      const Origin origin{Origin::Kind::file, path_, line_of(item.first.Mark())};
      out_.entries.push_back({section, name, entry_text(item.second), entry_kind(item.second), origin});
    }
  }

  static Entry::Kind entry_kind(const YAML::Node& node) {
    if (node.IsScalar()) return Entry::Kind::scalar;
    return node.IsSequence() ? Entry::Kind::list : Entry::Kind::other;
  }

  // Items that are more than a word are quoted: ["8,16"] has one item, which is no number.
  static std::string entry_text(const YAML::Node& node) {
    if (node.IsScalar()) return node.Scalar();
    if (!node.IsSequence()) return kind_of(node);
    std::vector<std::string> items;
    for (const YAML::Node& item : node) {
      const bool word = item.IsScalar() && item.Scalar().find_first_of(", []") == std::string::npos && !item.Scalar().empty();
      items.push_back(item.IsScalar() ? word ? item.Scalar() : fmt::format("\"{}\"", item.Scalar()) : kind_of(item));
    }
    return fmt::format("[{}]", fmt::join(items, ", "));
  }

  // Whether `key` is a word seen for the first time; reports it otherwise.
  bool first_time(const YAML::Node& key, std::string_view what, const std::string& prefix, std::map<std::string, int>& seen,
                  std::string& name) {
    if (!key.IsScalar()) {
      problem(key.Mark(), fmt::format("{}{}: is not the name of a {}", prefix, kind_of(key), what));
      return false;
    }
    name = key.Scalar();
    const auto [place, fresh] = seen.emplace(name, line_of(key.Mark()));
    if (!fresh) problem(key.Mark(), fmt::format("{}{}: {} given twice, first in line {}", prefix, name, what, place->second));
    return fresh;
  }

  std::string path_;
  Reading& out_;
};

}  // namespace

void read_yaml(const std::string& path, Reading& out) {
  YamlReader reader(path, out);
  std::string text;
  const std::string failure = slurp(path, text);
  if (!failure.empty()) {
    out.problems.push_back({{Origin::Kind::file, path}, fmt::format("cannot be read: {}", failure)});
    out.complete = false;
    return;
  }
  try {
    if (const std::optional<YAML::Mark> second = second_document(text)) {
      reader.problem(*second, "starts a second YAML document, but a config is one");
    }
    reader.read_root(YAML::Load(text));
  } catch (const YAML::Exception& e) {
    reader.problem(e.mark, fmt::format("is not valid YAML: {}", e.msg));
    out.complete = false;
  }
}

void read_override(const std::string& word, Reading& out) {
  const Origin origin{Origin::Kind::command_line, ""};
  const size_t equals = word.find('=');
  if (equals == std::string::npos) {
    out.problems.push_back({origin, fmt::format("{}: must have the form section.key=value", word)});
    return;
  }
  const std::string key = word.substr(0, equals);
  const size_t dot = key.find('.');
  const bool dotted = dot != std::string::npos;
  out.entries.push_back(
      {dotted ? key.substr(0, dot) : "", dotted ? key.substr(dot + 1) : key, word.substr(equals + 1), Entry::Kind::scalar, origin});
}

std::string unknown_key(const std::string& section, const std::string& name) {
  Config any;
  std::string best;
  int best_cost = 0;
  std::vector<std::string_view> here;
  for (const Field& f : all_fields(any)) {
    if (f.section == section) here.push_back(f.name);
    const int distance = edit_distance(name, f.name);
    // In another section only a name that is nearly right is meant: not run.tensorboard for parallel.tensor.
    const bool close = f.section == section ? is_typo_of(name, f.name) : 4 * distance <= static_cast<int>(f.name.size());
    if (!close) continue;
    // The right name in the wrong section is nearer than any other name.
    const int cost = 2 * distance + (f.section == section ? 0 : 1);
    if (best.empty() || cost < best_cost) {
      best = f.key();
      best_cost = cost;
    }
  }
  if (!best.empty()) return fmt::format("unknown key; did you mean {}?", best);
  if (!here.empty()) return fmt::format("unknown key; {} has {}", section, fmt::join(here, ", "));
  for (const Section& s : all_sections()) {
    if (section.empty() && s.name == name) return fmt::format("is a section; give its keys as {}.key=value", name);
  }
  return unknown_section(section);
}

std::string unknown_section(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Section& s : all_sections()) names.push_back(s.name);
  const std::string_view best = nearest(name, names);
  if (!best.empty()) return fmt::format("unknown section; did you mean {}?", best);
  Config any;
  for (const Field& f : all_fields(any)) {
    if (name == f.name || name == f.key())
      return fmt::format("unknown section; did you mean the key {0} in section {1}?", f.name, f.section);
  }
  return fmt::format("unknown section; there are {}", fmt::join(names, ", "));
}

}  // namespace hlat
