#include "study/study_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "config/fields.h"
#include "config/nearest.h"
#include "config/nearest_file.h"
#include "config/yaml_entry.h"
#include "task/problems.h"
#include "task/yaml_map.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;

std::string study_text(const std::string& file) {
  std::error_code error;
  if (fs::is_directory(file, error)) fail<UsageError>("{}: cannot be read: it is a folder{}", file, file_hint(file));
  std::ifstream in(file, std::ios::binary);
  if (!in) fail<UsageError>("{}: cannot be read: {}{}", file, std::strerror(errno), file_hint(file));
  return {std::istreambuf_iterator<char>(in), {}};
}

// Names are parts of folders' names, and of lists with commas on the command line.
bool is_study_name(const std::string& name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.=:@";
  return !name.empty() && name.front() != '.' && name.front() != '-' && name.find_first_not_of(kLetters) == std::string::npos;
}

std::string as_study_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    if (c == '+') continue;  // 1e+1 is not 1e-1
    const char kept = is_study_name(std::string("x") + c) ? c : '-';
    if (!name.empty() || is_study_name(std::string(1, kept))) name += kept;
  }
  return name;
}

// One that was named in the place of a study.
bool is_train_config(const YAML::Node& root) {
  for (const char* key : {"base", "set", "axes", "runs"})
    if (root[key].IsDefined()) return false;
  const std::vector<Section> all = all_sections();
  return std::any_of(all.begin(), all.end(), [&](const Section& s) { return root[std::string(s.name)].IsDefined(); });
}

class StudyReader {
 public:
  StudyReader(const std::string& file, Problems& problems) : file_(file), problems_(problems) {}

  Study read(const YAML::Node& root, const std::vector<std::string_view>& columns) {
    Study study{.file = file_, .name = {}, .base = {}};
    if (!root.IsMap()) {
      problem(root, "must hold keys such as `base` and `axes`");
      return study;
    }
    if (is_train_config(root))
      fail<UsageError>("{}: this is a config of hlat train; a study names it as `base: {}`, see docs/studies.md", file_,
                       fs::path(file_).filename().string());
    YamlMap yaml(root, file_, "a study", problems_);
    study.name = yaml.text("name", as_study_name(fs::path(file_).stem().string()));
    if (!is_study_name(study.name)) yaml.problem("name", fmt::format("name = {}: {}", study.name, kNameRule));
    read_base(yaml.node("base"), study);
    if (const YAML::Node set = yaml.node("set"); set.IsDefined()) read_set(set, study.set);
    if (const YAML::Node runs = yaml.node("runs"); runs.IsDefined()) read_axis("run", runs, runs, study.axes);
    read_axes(yaml.node("axes"), study.axes);
    tell_leaves_apart(study.axes);
    study.only = read_matches(yaml.node("only"), "only", study.axes);
    study.exclude = read_matches(yaml.node("exclude"), "exclude", study.axes);
    study.ranks = read_ranks(yaml, study.ranks_at);
    study.at_once = yaml.integer("at_once", 1, 1);
    study.baseline = yaml.text("baseline");
    check_baseline(yaml, study);
    study.collect = yaml.texts("collect");
    for (const std::string& column : study.collect)
      if (std::find(columns.begin(), columns.end(), column) == columns.end())
        yaml.problem("collect", fmt::format("collect: there is no column {}{}", column, closest(column, columns)));
    yaml.refuse_unknown();
    return study;
  }

 private:
  static constexpr std::string_view kNameRule = "a name has letters, digits and _-.=:@ and does not begin with - or a dot";

  static std::string closest(const std::string& word, const std::vector<std::string_view>& names) {
    const std::string_view near = nearest(word, names);
    return near.empty() ? fmt::format("; there are {}", fmt::join(names, ", ")) : fmt::format("; did you mean {}?", near);
  }

  void problem(const YAML::Node& at, const std::string& text) {
    const int line = at.IsDefined() ? at.Mark().line : -1;
    problems_.add(line < 0 ? file_ : fmt::format("{}:{}", file_, line + 1), text);
  }

  // 0: none are given.
  int64_t read_ranks(YamlMap& yaml, Origin& at) const {
    if (!yaml.has("ranks")) return 0;
    at = origin_at(yaml.node("ranks"));
    return yaml.integer("ranks", 1, 1);
  }

  Origin origin_at(const YAML::Node& at) const { return {Origin::Kind::command_line, file_, at.Mark().line + 1}; }

  void read_base(const YAML::Node& base, Study& study) {
    if (!base.IsDefined()) return;
    if (base.IsScalar()) {
      const fs::path path = base.Scalar();
      study.base = path.is_absolute() ? path.string() : (fs::path(file_).parent_path() / path).lexically_normal().string();
      std::error_code none;
      if (!fs::is_regular_file(study.base, none))
        problem(base, fmt::format("base = {}: there is no file {}{}", base.Scalar(), study.base, file_hint(study.base)));
      return;
    }
    if (!base.IsMap()) return problem(base, "base must be the path of a config, or sections of keys");
    for (const auto& section : base) {
      const std::string name = section.first.IsScalar() ? section.first.Scalar() : "";
      if (name.find('.') != std::string::npos)
        add_entry(section.first, name, section.second, study.set);
      else if (!section.second.IsMap())
        problem(section.first, fmt::format("base: {} must be a section of `key: value` lines", name));
      else
        for (const auto& item : section.second)
          if (item.first.IsScalar()) add_entry(item.first, name + "." + item.first.Scalar(), item.second, study.set);
    }
  }

  void read_set(const YAML::Node& set, std::vector<Entry>& out) {
    if (!set.IsMap()) return problem(set, "set must hold `section.key: value` lines");
    for (const auto& item : set)
      if (item.first.IsScalar())
        add_entry(item.first, item.first.Scalar(), item.second, out);
      else
        problem(item.first, "set: a key must be a word such as train.steps");
  }

  // Whether the key exists and takes the value is for the config's loader to say.
  void add_entry(const YAML::Node& at, const std::string& key, const YAML::Node& value, std::vector<Entry>& out) {
    const size_t dot = key.find('.');
    if (key == "run.dir") return problem(at, "run.dir: each run of a study has a folder of its own; hlat study --out says where they are");
    for (const Entry& e : out)
      if (e.key() == key) return problem(at, fmt::format("{} is set twice, first in line {}", key, e.origin.line));
    if (value.IsSequence() && value.size() > 0 && value[0].IsMap()) return add_items(at, key, value, out);
    const Entry::Kind kind = entry_kind(value);
    if (kind == Entry::Kind::nothing) return problem(at, fmt::format("{} must have a value, or a list or map of values", key));
    out.push_back({.section = dot == std::string::npos ? "" : key.substr(0, dot),
                   .name = dot == std::string::npos ? key : key.substr(dot + 1),
                   .text = entry_text(value),
                   .kind = kind,
                   .origin = origin_at(at)});
  }

  // data.sources: [{path: a}, ...] is data.sources[0].path and so on.
  void add_items(const YAML::Node& at, const std::string& key, const YAML::Node& list, std::vector<Entry>& out) {
    add_entry(at, key, YAML::Load("[]"), out);
    for (size_t i = 0; i < list.size(); ++i) {
      if (!list[i].IsMap()) return problem(list[i], fmt::format("{}: an item must hold `key: value` lines", key));
      for (const auto& item : list[i])
        if (item.first.IsScalar()) add_entry(item.first, fmt::format("{}[{}].{}", key, i, item.first.Scalar()), item.second, out);
    }
  }

  void read_axes(const YAML::Node& axes, std::vector<StudyAxis>& out) {
    if (!axes.IsDefined()) return;
    if (axes.IsSequence())
      for (const YAML::Node& item : axes) read_axes(item, out);
    else if (!axes.IsMap())
      problem(axes, "axes must hold `name: [points]` lines");
    else
      for (const auto& axis : axes)
        if (axis.first.IsScalar()) read_axis(axis.first.Scalar(), axis.first, axis.second, out);
  }

  void read_axis(const std::string& name, const YAML::Node& at, const YAML::Node& content, std::vector<StudyAxis>& out) {
    StudyAxis axis{.name = name, .origin = origin_at(at)};
    const size_t dot = name.rfind('.');
    if (dot != std::string::npos) axis.leaf = name.substr(dot + 1);
    axis.seeds = name == "seed" || axis.leaf == "seed";
    YAML::Node list = content;
    if (content.IsMap()) {
      YamlMap yaml(content, file_, fmt::format("the axis {}", name), problems_);
      axis.seeds = yaml.flag("seeds", axis.seeds);
      list.reset(yaml.node("points"));
      yaml.refuse_unknown();
    }
    if (!list.IsDefined() || !list.IsSequence() || list.size() == 0)
      return problem(at, fmt::format("the axis {} must have a list of points, or of values", name));
    for (const StudyAxis& other : out) {
      if (other.name == name) return problem(at, fmt::format("the axis {} is there twice, first in line {}", name, other.origin.line));
      if (other.is_called(name) || axis.is_called(other.name))
        return problem(at, fmt::format("the axis {} and the axis {} of line {} can both be called {}; give one of them another name", name,
                                       other.name, other.origin.line, name.size() < other.name.size() ? name : other.name));
    }
    for (const YAML::Node& item : list) read_point(axis, item);
    out.push_back(std::move(axis));
  }

  // Keys that end alike (run.seed, data.seed) name axis and points as a whole.
  static void tell_leaves_apart(std::vector<StudyAxis>& axes) {
    std::map<std::string, int> count;
    for (const StudyAxis& axis : axes) ++count[axis.leaf];
    for (StudyAxis& axis : axes) {
      if (axis.leaf.empty() || count[axis.leaf] < 2) continue;
      axis.leaf = axis.name;
      for (StudyPoint& point : axis.points)
        if (!point.value.empty()) point.name = as_study_name(axis.leaf + "=" + point.value);
    }
  }

  void read_point(StudyAxis& axis, const YAML::Node& node) {
    StudyPoint point;
    if (node.IsScalar()) {
      if (axis.leaf.empty())
        return problem(node, fmt::format("the axis {}: a value needs a key such as run.seed as the axis's name; a point is written "
                                         "{{name: {}, set: {{section.key: value}}}}",
                                         axis.name, node.Scalar()));
      point.value = node.Scalar();
      point.name = as_study_name(axis.leaf + "=" + point.value);
      add_entry(node, axis.name, node, point.set);
    } else if (!node.IsMap()) {
      return problem(node, fmt::format("the axis {}: a point must be a value, or {{name: ..., set: {{section.key: value}}}}", axis.name));
    } else {
      YamlMap yaml(node, file_, fmt::format("a point of {}", axis.name), problems_);
      point.name = yaml.required("name");
      if (yaml.has("name") && !is_study_name(point.name)) yaml.problem("name", fmt::format("name = {}: {}", point.name, kNameRule));
      if (const YAML::Node set = yaml.node("set"); set.IsDefined()) read_set(set, point.set);
      point.ranks = read_ranks(yaml, point.ranks_at);
      yaml.refuse_unknown();
    }
    for (const StudyPoint& other : axis.points)
      if (other.name == point.name && !point.name.empty())
        return problem(node, fmt::format("the axis {} has two points {}", axis.name, point.name));
    axis.points.push_back(std::move(point));
  }

  std::vector<StudyMatch> read_matches(const YAML::Node& list, std::string_view key, const std::vector<StudyAxis>& axes) {
    std::vector<StudyMatch> out;
    if (!list.IsDefined()) return out;
    if (!list.IsSequence()) {
      problem(list, fmt::format("{} must be a list of combinations such as {{precision: sr}}", key));
      return out;
    }
    for (const YAML::Node& item : list) {
      if (!item.IsMap()) {
        problem(item, fmt::format("{}: a combination is written {{axis: point, axis: [points]}}", key));
        continue;
      }
      StudyMatch match;
      for (const auto& pair : item) read_match(pair.first, pair.second, key, axes, match);
      out.push_back(std::move(match));
    }
    return out;
  }

  void read_match(const YAML::Node& at, const YAML::Node& points, std::string_view key, const std::vector<StudyAxis>& axes,
                  StudyMatch& out) {
    const std::string name = at.IsScalar() ? at.Scalar() : "";
    const auto axis = std::find_if(axes.begin(), axes.end(), [&](const StudyAxis& a) { return a.is_called(name); });
    if (axis == axes.end()) {
      std::vector<std::string_view> names;
      for (const StudyAxis& a : axes) names.push_back(a.leaf.empty() ? a.name : a.leaf);
      return problem(at, fmt::format("{}: there is no axis {}{}", key, name, closest(name, names)));
    }
    std::vector<YAML::Node> nodes;
    if (points.IsSequence())
      for (const YAML::Node& p : points) nodes.push_back(p);
    else
      nodes.push_back(points);
    if (nodes.empty()) problem(at, fmt::format("{}: the list of points of {} is empty", key, name));
    for (const YAML::Node& p : nodes) {
      const std::string word = p.IsScalar() ? p.Scalar() : "";
      const auto point = std::find_if(axis->points.begin(), axis->points.end(), [&](const StudyPoint& s) { return s.is_called(word); });
      if (point != axis->points.end()) {
        out[axis->name].push_back(point->name);
        continue;
      }
      std::vector<std::string_view> names;
      for (const StudyPoint& s : axis->points) names.push_back(s.name);
      problem(p, fmt::format("{}: the axis {} has no point {}{}", key, name, word, closest(word, names)));
    }
  }

  static void check_baseline(YamlMap& yaml, const Study& study) {
    if (study.baseline.empty()) return;
    std::vector<std::string_view> names, found, seeds;
    for (const StudyAxis& axis : study.axes)
      for (const StudyPoint& point : axis.points) {
        if (point.is_called(study.baseline)) (axis.seeds ? seeds : found).push_back(point.name);
        if (!axis.seeds) names.push_back(point.name);
      }
    const auto tell = [&](const std::string& text) { yaml.problem("baseline", fmt::format("baseline = {}: {}", study.baseline, text)); };
    if (found.empty() && !seeds.empty())
      tell("is a point of an axis of seeds; rows are means over seeds, so none of them can be the baseline");
    else if (found.empty())
      tell(names.empty() ? "all axes are of seeds, and rows are means over seeds: there is one row"
                         : "no axis has such a point" + closest(study.baseline, names));
    else if (found.size() > 1)
      tell(fmt::format("points of {} axes have this name or value: {}", found.size(), fmt::join(found, ", ")));
  }

  std::string file_;
  Problems& problems_;
};

}  // namespace

Study read_study(const std::string& file, const std::vector<std::string_view>& columns) {
  const std::string text = study_text(file);
  Problems problems;
  Study study;
  try {
    study = StudyReader(file, problems).read(YAML::Load(text), columns);
  } catch (const YAML::Exception& e) {
    problems.add(e.mark.line < 0 ? file : fmt::format("{}:{}", file, e.mark.line + 1), fmt::format("is not valid YAML: {}", e.msg));
  }
  problems.refuse(fmt::format("the study {}", file));
  return study;
}

}  // namespace hlat
