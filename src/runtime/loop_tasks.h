// Tasks evaluated on the live weights of a training run, on its own mesh and within its plan: the curves of intermediate checkpoints,
// without a checkpoint. Evaluation reads weights, those of FP8 as their masters are, and writes a cache of its own: the run goes on bit by
// bit as without it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/run_tokenizer.h"
#include "eval/executor_model.h"
#include "eval/task_run.h"
#include "task/library.h"

namespace hlat {

// What an evaluation found, on rank 0; empty where none was due.
struct LoopEvaluation {
  std::vector<std::pair<std::string, double>> values = {};  // by "TASK/METRIC"
  std::string line = {};                                    // "step 4: piqa acc 0.500, acc_norm 0.450; 12 examples in 0.35s"
  std::vector<std::string> warnings = {};                   // tasks that failed; over-long requests, the first time
  bool stopped = false;                                     // early, without values
};

class LoopTasks {
 public:
  // Collective over `world`, before anything is written. UsageError on all ranks where a task is unknown, its data missing or broken, or
  // where it runs programs, which a training run does not.
  LoopTasks(const Config& config, Comm& world);

  // Before the first step, when there are weights: takes the planned memory, and makes the largest passes once, so that memory in use is
  // the plan's from the first step on. The executor must outlive this.
  void place(Executor& executor);

  // After a step. Collective. A task that fails is left out, with a warning: the run goes on. stop, asked on rank 0 between chunks of
  // requests, ends it early, without values.
  LoopEvaluation after(int64_t step, const std::function<bool()>& stop);
  bool due(int64_t step) const;  // whether that evaluates

 private:
  void check_tasks();

  const Config& config_;
  Comm& world_;
  TaskRunOptions options_;
  std::unique_ptr<TaskLibrary> library_;  // on rank 0
  std::vector<const Task*> tasks_;        // on rank 0
  std::set<std::string> warned_;          // of over-long requests
  RunTokenizer tokenizer_;
  std::optional<KvPasses> passes_;
  std::optional<ExecutorModel> model_;
  std::optional<TextModel> texts_;
};

}  // namespace hlat
