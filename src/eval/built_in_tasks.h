// What the built-in tasks say where results do not: files of lm-evaluation-harness have neither groups nor headlines, and a published mean
// is one of all tasks of its group.
#pragma once

#include <string>
#include <vector>

#include "task/task.h"

namespace hlat {

const TaskInfo* built_in_task(const std::string& name);             // null: there is none
std::vector<std::string> built_in_group(const std::string& group);  // tasks in the mean of a group, sorted; empty: there is no such group

}  // namespace hlat
