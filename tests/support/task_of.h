// A task from the text of a file, for tests.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "task/task.h"
#include "task/task_file.h"

namespace hlat::test {

inline Task task_of(const std::string& yaml) { return Task(read_task_file(YAML::Load(yaml), "test.yaml")); }

// Of a task that is its own only subtask.
inline std::vector<Example> examples_of(const Task& task, const TaskOptions& options) { return task.examples(task.info().name, options); }

}  // namespace hlat::test
