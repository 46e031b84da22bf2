// The `metrics` of a task file: their names, what they are computed by and which kinds of tasks have them.
#pragma once

#include "task/task_file.h"
#include "task/yaml_map.h"

namespace hlat {

// Fills info.metrics, info.headline and rules from `metrics` and `headline`; kind and filters are known.
void read_metrics(YamlMap& yaml, TaskFile& out);

}  // namespace hlat
