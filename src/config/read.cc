#include "config/read.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "config/fields.h"
#include "config/nearest_file.h"
#include "config/unknown_name.h"
#include "config/yaml_entry.h"

namespace hlat {
namespace {

constexpr size_t kMaxBytes = 1 << 20;  // a config is a page; a mistaken path may be endless

int line_of(const YAML::Mark& mark) { return mark.line + 1; }  // marks count from 0 and are -1 where unknown

std::string why_not_read(const std::string& path, int error) {
  const bool misnamed = error == ENOENT || error == ENOTDIR || error == EISDIR;
  return std::strerror(error) + (misnamed ? file_hint(path) : "");
}

// Returns why the file cannot be read, or nothing and its text.
std::string slurp(const std::string& path, std::string& text) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return why_not_read(path, errno);
  text.resize(kMaxBytes + 1);
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get())) return why_not_read(path, errno);
  return text.size() > kMaxBytes ? "larger than 1 MiB, not a config" : "";
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

// The first line, from 1, with a tab before its first word; 0 when there is none. The parser's own words about one do not name it.
int line_indented_by_tab(const std::string& text) {
  std::istringstream lines(text);
  int number = 1;
  for (std::string line; std::getline(lines, line); ++number) {
    const size_t word = line.find_first_not_of(" \t");
    if (word != std::string::npos && line[word] != '#' && line.find('\t') < word) return number;
  }
  return 0;
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
      const std::string given = content.IsScalar() ? content.Scalar() : kind_words(content);
      return problem(at.Mark(), fmt::format("{} = {}: must be a section of `key: value` lines", section, given));
    }
    std::map<std::string, int> seen;
    for (const auto& item : content) {
      std::string name;
      if (!first_time(item.first, "key", section + ".", seen, name)) continue;
      if (item.second.IsSequence() && names_items(section, name))
        read_items(section, name, item.first, item.second);
      else
        add_entry(section, name, item.first, item.second);
    }
  }

  void add_entry(const std::string& section, const std::string& name, const YAML::Node& at, const YAML::Node& value) {
    out_.entries.push_back({section, name, entry_text(value), entry_kind(value), {Origin::Kind::file, path_, line_of(at.Mark())}});
  }

  static bool names_items(const std::string& section, const std::string& name) {
    Config any;
    const std::vector<Field> list = all_fields(any);
    return std::any_of(list.begin(), list.end(), [&](const Field& f) { return f.section == section && f.leaf == name && is_item_list(f); });
  }

  // Each item is a map with the keys of its struct; its entries are called `name[0].key`.
  void read_items(const std::string& section, const std::string& name, const YAML::Node& at, const YAML::Node& list) {
    out_.entries.push_back({section,
                            name,
                            fmt::format("[{} items]", list.size()),
                            Entry::Kind::items,
                            {Origin::Kind::file, path_, line_of(at.Mark())},
                            list.size()});
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string item = fmt::format("{}[{}]", name, i);
      if (!list[i].IsMap()) {
        const std::string given = list[i].IsScalar() ? list[i].Scalar() : kind_words(list[i]);
        problem(list[i].Mark(), fmt::format("{}.{} = {}: must be a map of `key: value` pairs", section, item, given));
        continue;
      }
      std::map<std::string, int> seen;
      for (const auto& pair : list[i]) {
        std::string key;
        if (first_time(pair.first, "key", fmt::format("{}.{}.", section, item), seen, key))
          add_entry(section, item + "." + key, pair.first, pair.second);
      }
    }
  }

  // Whether `key` is a word seen for the first time; reports it otherwise.
  bool first_time(const YAML::Node& key, std::string_view what, const std::string& prefix, std::map<std::string, int>& seen,
                  std::string& name) {
    if (!key.IsScalar()) {
      problem(key.Mark(), fmt::format("{}{}: is not the name of a {}", prefix, kind_words(key), what));
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
    const int tab = line_indented_by_tab(text);
    if (tab > 0)
      out.problems.push_back({{Origin::Kind::file, path, tab}, "is indented with a tab; YAML allows blanks only"});
    else
      reader.problem(e.mark, fmt::format("is not valid YAML: {}", e.msg));
    out.complete = false;
  }
}

void read_override(const std::string& word, Reading& out) {
  const Origin origin{Origin::Kind::command_line, ""};
  const size_t equals = word.find('=');
  if (equals == std::string::npos) {
    const bool file = word.ends_with(".yaml") || word.ends_with(".yml");
    out.problems.push_back({origin, fmt::format("{}: must have the form section.key=value{}", word,
                                                file ? "; the config file is given as --config FILE, once" : "")});
    return;
  }
  const std::string key = word.substr(0, equals);
  const size_t dot = key.find('.');
  const bool dotted = dot != std::string::npos;
  out.entries.push_back(
      {dotted ? key.substr(0, dot) : "", dotted ? key.substr(dot + 1) : key, word.substr(equals + 1), Entry::Kind::scalar, origin});
}

}  // namespace hlat
