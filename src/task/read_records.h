// Records of a data file as JSON objects, each with its place for messages. Files may be compressed (.gz, .zst).
#pragma once

#include <string>
#include <vector>

#include "task/data_source.h"
#include "task/problems.h"

namespace hlat {

struct TaskRecord {
  int64_t id = 0;  // its number in the file, from 0
  Json fields = {};
  std::string where;  // "piqa/dev.jsonl:12", "truthfulqa/mc_task.json item 12" (from 1)
};

// `labels`: path of the label file, where the source has one. Broken records are put into `problems` and left out. FaultError where a disk
// fails.
std::vector<TaskRecord> read_records(const DataSource& source, const std::string& path, const std::string& labels, Problems& problems);

// The named groups of the source's pattern at its first match in a file; a problem where there is none.
Json read_fields(const Pattern& pattern, const std::string& path, Problems& problems);

}  // namespace hlat
