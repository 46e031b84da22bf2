#include "eval/built_in_tasks.h"

#include <algorithm>

#include "task/library.h"

namespace hlat {

namespace {

// By name.
const std::vector<TaskInfo>& built_in() {
  static const std::vector<TaskInfo> all = [] {
    TaskLibrary library;
    std::vector<TaskInfo> infos;
    for (const Task* task : library.find(library.names())) infos.push_back(task->info());
    return infos;
  }();
  return all;
}

}  // namespace

const TaskInfo* built_in_task(const std::string& name) {
  const auto found = std::find_if(built_in().begin(), built_in().end(), [&](const TaskInfo& info) { return info.name == name; });
  return found == built_in().end() ? nullptr : &*found;
}

std::vector<std::string> built_in_group(const std::string& group) {
  std::vector<std::string> names;
  for (const TaskInfo& info : built_in())
    if (info.group == group && info.in_group_mean) names.push_back(info.name);
  return names;
}

}  // namespace hlat
