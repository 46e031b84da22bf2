// From a record to what is asked and what is right, by the templates of a task. An Error says what a record lacks.
#pragma once

#include <string>
#include <vector>

#include "task/task_file.h"

namespace hlat {

// The right choice's number, the first true one where there are several. Error where it is out of range.
size_t gold_of(const TaskFile& task, const Json& record, size_t choices);
// For each choice whether it is true. Error where they are not as many as the choices, or all are false.
std::vector<bool> truths_of(const TaskFile& task, const Json& record, size_t choices);
std::vector<std::string> references_of(const TaskFile& task, const Json& record);

// A solved example, with the delimiter behind it.
std::string fewshot_text(const TaskFile& task, const Fields& fields);

// The requests of a record. `before` is the description and the few-shot examples; `sampling_seed` is that of the first sample.
std::vector<TextRequest> requests_of(const TaskFile& task, const Fields& fields, const std::string& before, uint64_t sampling_seed);

}  // namespace hlat
