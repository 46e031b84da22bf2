// The verdict on an example: from the answers to its requests to the values of the task's metrics.
#pragma once

#include <span>

#include "task/task_file.h"

namespace hlat {

Judgement judge_example(const TaskFile& task, const Example& example, std::span<const Answer> answers, const ProgramRunner& run);

// What a filter takes of a text: the chosen match of its pattern, its first group that matched anything where it has groups, stripped;
// "[invalid]" where there is none.
std::string filtered(const AnswerFilter& filter, const std::string& text);

// Whether two texts are the same to the task, after it has left out what it ignores.
bool same_answer(const TaskFile& task, const std::string& given, const std::string& right);

}  // namespace hlat
