// Where the records of a task lie and how they are written. File names start from the data folder; of several alternatives the first that
// is there is taken. A `*` in a name stands for one subtask: "mmlu/test/*_test.csv".
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/pattern.h"
#include "task/template.h"

namespace hlat {

enum class RecordFormat : uint8_t { by_name, jsonl, json, csv, text };

struct DataSource {
  std::vector<std::string> files;
  RecordFormat format = RecordFormat::by_name;
  std::vector<std::string> columns;             // csv: names of the columns of a file without a line of names
  char separator = ',';                         // csv
  std::vector<std::string> list;                // json: names that lead to the list of records; empty: the file is the list
  std::shared_ptr<const Pattern> pattern;       // text: each match is a record, its named groups are the fields
  std::shared_ptr<const Pattern> record_start;  // text: a record, field `text`, begins at each match
  std::vector<std::string> labels;              // a file with one more field for each record, line by line
  std::string label_field;
  Template where;              // records for which this is false are left out
  std::vector<Json> examples;  // records written in the task file itself, instead of a file

  bool given() const { return !files.empty() || !examples.empty(); }
};

// Names of the subtasks that there are files for: what * stands for, sorted. Empty where there is no file; a name without * gives one
// subtask with an empty name.
std::vector<std::string> subtasks_of(const std::vector<std::string>& alternatives, const std::filesystem::path& folder);

// The file of a subtask, or nothing.
std::optional<std::string> find_file(const std::vector<std::string>& alternatives, const std::filesystem::path& folder,
                                     const std::string& subtask);

}  // namespace hlat
