// The tasks there are: those built into the binary (tasks/*.yaml) and those of a user's folder, whose files win over built-in ones of
// the same name. A file that says `include: NAME` starts from that task and changes what it names itself.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "task/task.h"

namespace YAML {
class Node;
}

namespace hlat {

// What `hlat eval --list` shows of a task.
struct TaskListing {
  TaskInfo info;
  int64_t subtasks = 0;                   // 0 where data is missing
  int64_t examples = 0;                   // likewise
  std::vector<std::string> missing = {};  // data files that are not there
  std::string problem = {};               // why its data cannot be read, though it is there
};

// "CR, boolq" -> CR and boolq
std::vector<std::string> split_task_names(const std::string& names);

// UsageError where the folder of evaluation data is none. setting: how the user named it.
void check_data_folder(const std::filesystem::path& folder, const std::string& setting);

class TaskLibrary {
 public:
  // `folder`: *.yaml files of a user; empty: built-in tasks alone. UsageError where a task file is wrong or the folder is not there.
  explicit TaskLibrary(const std::filesystem::path& folder = {});

  std::vector<std::string> names() const;  // sorted
  // By name, by the path of a YAML file, or by the name of a group, in any case of letters, all its tasks that count in its mean. Blanks
  // around names do not count. UsageError names all that are unknown with what may have been meant. No task twice; the pointers hold as
  // long as the library.
  std::vector<const Task*> find(const std::vector<std::string>& names);
  std::vector<TaskListing> list(const TaskOptions& options) const;  // by name

 private:
  struct Source {
    std::string text;
    std::string file;
  };
  using Sources = std::map<std::string, Source>;  // by name of the task

  static std::string name_in(const Source& source);
  std::string add_file(const std::filesystem::path& path, Sources& added) const;
  YAML::Node with_includes(const std::string& name, const Source& source, int depth) const;
  void build(const std::string& name, const Source& source);
  std::vector<const Task*> meaning(const std::string& name);  // empty: unknown
  std::vector<std::string> groups() const;                    // with tasks that count in their mean
  std::string unknown_task(const std::string& name) const;    // a line that starts with a line break

  Sources built_in_;
  Sources own_;
  std::map<std::string, Task> tasks_;
};

}  // namespace hlat
