#include "task/library.h"

#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "config/nearest.h"
#include "config/nearest_file.h"
#include "task/embedded_tasks.h"
#include "task/task_file.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxIncludes = 8;

YAML::Node parse(const std::string& text, const std::string& file) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) fail<UsageError>("task file {}: must hold `key: value` lines", file);
    return root;
  } catch (const YAML::Exception& e) {
    fail<UsageError>("task file {}:{}: {}", file, e.mark.line + 1, e.msg);
  }
}

// Gives `node` the keys that only `base` has, in maps within maps too.
void add_missing_keys(YAML::Node node, const YAML::Node& base) {
  for (const auto& item : base) {
    const std::string key = item.first.Scalar();
    YAML::Node mine = node[key];
    if (!mine.IsDefined())
      node[key] = item.second;
    else if (mine.IsMap() && item.second.IsMap())
      add_missing_keys(mine, item.second);
  }
}

std::string content(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf())) fail<UsageError>("task file {} cannot be read{}", path.string(), file_hint(path.string()));
  return text.str();
}

std::string trimmed(const std::string& name) {
  const size_t first = name.find_first_not_of(" \t"), last = name.find_last_not_of(" \t");
  return first == std::string::npos ? "" : name.substr(first, last - first + 1);
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool is_yaml(const fs::path& path) { return path.extension() == ".yaml" || path.extension() == ".yml"; }

}  // namespace

std::vector<std::string> split_task_names(const std::string& names) {
  std::vector<std::string> all;
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find(',', at), names.size());
    if (std::string name = trimmed(names.substr(at, end - at)); !name.empty()) all.push_back(std::move(name));
    at = end + 1;
  }
  return all;
}

void check_data_folder(const fs::path& folder, const std::string& setting) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return;
  fail<UsageError>("{} {}: {}", setting, folder.string(), fs::exists(folder, ignored) ? "is not a folder" : "there is no such folder");
}

TaskLibrary::TaskLibrary(const fs::path& folder) {
  for (const EmbeddedTask& task : embedded_tasks()) built_in_[std::string(task.name)] = {std::string(task.text), "built in"};
  if (!folder.empty()) {
    std::error_code error;
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
      if (is_yaml(entry.path())) files.push_back(entry.path());
    if (error) fail<UsageError>("folder of tasks {} cannot be read: {}", folder.string(), error.message());
    std::sort(files.begin(), files.end());
    for (const fs::path& path : files) add_file(path, own_);
  }
  for (const auto& [name, source] : own_) build(name, source);
  for (const auto& [name, source] : built_in_)
    if (own_.find(name) == own_.end()) build(name, source);
}

std::string TaskLibrary::name_in(const Source& source) {
  const YAML::Node name = parse(source.text, source.file)["task"];
  if (!name.IsDefined() || !name.IsScalar()) fail<UsageError>("task file {}: no `task: NAME`", source.file);
  return name.Scalar();
}

std::string TaskLibrary::add_file(const fs::path& path, Sources& added) const {
  const Source source = {content(path), path.string()};
  const std::string name = name_in(source);
  const auto [at, is_new] = added.emplace(name, source);
  if (!is_new && at->second.file != source.file) fail<UsageError>("task {} is in {} and in {}", name, at->second.file, source.file);
  return name;
}

YAML::Node TaskLibrary::with_includes(const std::string& name, const Source& source, int depth) const {
  YAML::Node root = parse(source.text, source.file);
  if (!root["include"].IsDefined()) return root;
  const auto wanted = root["include"].as<std::string>("");
  // A user's file may start from the built-in task whose name it takes.
  const auto own = wanted == name ? own_.end() : own_.find(wanted);
  const auto found = own != own_.end() ? own : built_in_.find(wanted);
  if (found == built_in_.end()) fail<UsageError>("task file {}: include: there is no task '{}'", source.file, wanted);
  if (depth == kMaxIncludes) fail<UsageError>("task file {}: include: more than {} files, one from the other", source.file, kMaxIncludes);
  root.remove("include");
  add_missing_keys(root, with_includes(wanted, found->second, depth + 1));
  return root;
}

void TaskLibrary::build(const std::string& name, const Source& source) {
  tasks_.insert_or_assign(name, Task(read_task_file(with_includes(name, source, 0), source.file)));
}

std::vector<std::string> TaskLibrary::names() const {
  std::vector<std::string> out;
  for (const auto& [name, task] : tasks_) out.push_back(name);
  return out;
}

std::vector<const Task*> TaskLibrary::find(const std::vector<std::string>& names) {
  std::vector<const Task*> out;
  std::string unknown;
  for (const std::string& given : names) {
    const std::string name = trimmed(given);
    const std::vector<const Task*> meant = meaning(name);
    if (meant.empty()) unknown += unknown_task(name);
    for (const Task* task : meant)
      if (std::find(out.begin(), out.end(), task) == out.end()) out.push_back(task);
  }
  if (!unknown.empty()) throw UsageError(unknown.substr(1));
  return out;
}

std::vector<const Task*> TaskLibrary::meaning(const std::string& name) {
  if (is_yaml(name)) {
    Sources added;
    const std::string task = add_file(name, added);
    own_.insert_or_assign(task, added.at(task));
    build(task, own_.at(task));
    return {&tasks_.at(task)};
  }
  const auto found = tasks_.find(name);
  if (found != tasks_.end()) return {&found->second};
  std::vector<const Task*> group;
  for (const auto& [ignored, task] : tasks_)
    if (lower(task.info().group) == lower(name) && task.info().in_group_mean) group.push_back(&task);
  return group;
}

std::vector<std::string> TaskLibrary::groups() const {
  std::vector<std::string> all;
  for (const auto& [ignored, task] : tasks_)
    if (task.info().in_group_mean && std::find(all.begin(), all.end(), task.info().group) == all.end()) all.push_back(task.info().group);
  return all;
}

std::string TaskLibrary::unknown_task(const std::string& name) const {
  const std::vector<std::string> groups = this->groups();
  std::vector<std::string_view> known(groups.begin(), groups.end()), alike;
  for (const auto& [other, task] : tasks_) {
    known.push_back(other);
    if (other.find(name) != std::string::npos) alike.push_back(other);
  }
  const std::string_view near = nearest(name, known);
  if (!near.empty()) return fmt::format("\nunknown task '{}'; did you mean {}?", name, near);
  if (!alike.empty()) return fmt::format("\nunknown task '{}'; there are {}", name, fmt::join(alike, ", "));
  known.erase(known.begin(), known.begin() + static_cast<ptrdiff_t>(groups.size()));
  return fmt::format("\nunknown task '{}'; there are the groups {}, and the tasks {}", name, fmt::join(groups, ", "),
                     fmt::join(known, ", "));
}

std::vector<TaskListing> TaskLibrary::list(const TaskOptions& options) const {
  std::vector<TaskListing> out;
  for (const auto& [name, task] : tasks_) {
    TaskListing row = {.info = task.info(), .missing = task.missing(options)};
    if (row.missing.empty()) {
      try {
        for (const std::string& subtask : task.subtasks(options)) {
          row.examples += task.count(subtask, options);
          ++row.subtasks;
        }
      } catch (const UsageError& e) {
        row.problem = e.what();
      }
    }
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace hlat
