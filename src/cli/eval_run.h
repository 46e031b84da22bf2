// Evaluates saved models: opens one after the other on the ranks that were started, runs the tasks, and keeps what comes of it in folders.
// Rank 0 knows tasks and folders; the others only compute.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/eval_args.h"
#include "cli/eval_folder.h"
#include "cli/eval_signals.h"
#include "cli/eval_tasks.h"
#include "eval/task_run.h"

namespace hlat {

struct Evaluated {
  Results results;       // rank 0; of earlier calls too
  bool stopped = false;  // by a signal; on all ranks
};

class EvalRun {
 public:
  // Finds the tasks, which are those of the checkpoint's config where no others are given, and looks whether they can be evaluated here.
  // Collective. UsageError on all ranks.
  EvalRun(const EvalArgs& args, const std::filesystem::path& checkpoint, Session& session, EvalSignals& signals);

  // Collective. UsageError, on all ranks, where the model cannot be opened, or the folder has results of another evaluation or of more
  // examples.
  Evaluated run(const std::filesystem::path& checkpoint, const std::filesystem::path& out);
  // Rank 0: the results where all tasks of this checkpoint have been evaluated so. UsageError where there are those of more examples than
  // are wanted now.
  std::optional<Results> find_done(const std::filesystem::path& checkpoint, const std::filesystem::path& out) const;

 private:
  TaskRunOptions run_options(const EvalModel& model, const EvalFolder& folder) const;
  bool run_here(EvalModel& model, TextModel& text, EvalFolder& folder, const std::string& warning);
  std::string done_text(const TaskResult& result, double seconds) const;

  const EvalArgs& args_;
  Session& session_;
  EvalSignals& signals_;
  std::unique_ptr<EvalTasks> tasks_;  // rank 0
};

}  // namespace hlat
