// The tasks there are: those built into the binary (tasks/*.yaml) and those of a user's folder, whose files win over built-in ones of
// the same name.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "task/task.h"

namespace hlat {

// What `hlat eval --list` shows of a task.
struct TaskListing {
  TaskInfo info;
  int64_t subtasks = 0;              // 0 where data is missing
  int64_t examples = 0;              // likewise
  std::vector<std::string> missing;  // data files that are not there
  std::string problem;               // why its data cannot be read, though it is there
};

class TaskLibrary {
 public:
  // `folder`: *.yaml files of a user; empty: built-in tasks alone. UsageError where a task file is wrong or the folder is not there.
  explicit TaskLibrary(const std::filesystem::path& folder = {});

  std::vector<std::string> names() const;  // sorted
  // By name, by the path of a YAML file, or all of a group that count in its mean (by the group's name). UsageError names what is unknown
  // with what may have been meant. No task twice.
  std::vector<const Task*> find(const std::vector<std::string>& names);
  std::vector<TaskListing> list(const TaskOptions& options) const;

 private:
  const Task& add(const std::string& name, const std::string& text, const std::string& origin);

  std::map<std::string, std::string> built_in_;  // texts by name, for `include`
  std::map<std::string, Task> tasks_;
};

}  // namespace hlat
