// Tasks on a model: examples are asked in chunks, judged by their task, and become numbers with standard errors. A task that cannot be
// evaluated is recorded with its error, and the next one goes on. With a folder for samples, what it has is not computed again, and a run
// that is stopped loses no more than the chunk under way.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "eval/subtask_run.h"
#include "task/task.h"

namespace hlat {

struct TaskResult {
  TaskInfo info;
  int64_t shots = 0;
  std::vector<Estimate> metrics;        // of all subtasks; none where one has an error
  std::vector<SubtaskResult> subtasks;  // one at least, unless the error came before
  std::string error = {};               // empty: all is well

  int64_t examples() const;
  std::vector<std::string> warnings() const;  // over-long requests, questions with fewer few-shot examples
};

struct TaskRunHooks {
  std::function<void(size_t task, int64_t examples)> progress = {};  // of a task that are done
  std::function<void(const TaskResult&)> finished = {};              // with a task; what it throws ends the run
  std::function<bool()> stop = {};                                   // asked between chunks
};

struct TaskRunResult {
  std::vector<TaskResult> tasks;  // those that ended, on rank 0
  bool stopped = false;
  int64_t kept = 0;  // stopped: examples of the task behind these that its samples have
};

struct CheckedTask {
  Example first;
  int64_t examples = 0;  // of all subtasks
};
// Makes all examples of the tasks once. UsageError with what is wrong with the data of each, before hours are spent on the others.
std::vector<CheckedTask> check_examples(std::span<const Task* const> tasks, const TaskOptions& options);

// Collective over the ranks of the model. Rank 0 reads the data, the others only compute and get no results; tasks, options and hooks are
// rank 0's. Errors of a task are in its result; what is thrown is a failure of the model, its ranks or the folder of samples.
TaskRunResult run_tasks(TextModel& model, std::span<const Task* const> tasks, const TaskRunOptions& options,
                        const TaskRunHooks& hooks = {});

}  // namespace hlat
