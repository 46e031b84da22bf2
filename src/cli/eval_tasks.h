// The tasks of an evaluation: found by their names, and looked at before a model is opened, so that what a user has to change is told at
// once. Rank 0 alone has them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/eval_args.h"
#include "data/run_tokenizer.h"
#include "eval/results.h"
#include "eval/task_run.h"
#include "sandbox/sandbox.h"
#include "task/library.h"

namespace hlat {

class EvalTasks {
 public:
  // Those of the checkpoint's config where no others are given. UsageError: unknown tasks, data that is missing or broken, programs that
  // are not allowed or cannot be run, texts that the checkpoint's tokenizer cannot encode.
  EvalTasks(const EvalArgs& args, const std::filesystem::path& checkpoint);

  const std::vector<const Task*>& all() const { return tasks_; }
  const TaskOptions& options() const { return options_; }
  int64_t examples(size_t task) const { return checked_[task].examples; }     // that are wanted of it
  const std::string& limit_setting() const { return limit_setting_; }         // where the limit comes from
  ProgramRunner runner() const;                                               // none where no task needs one
  bool done_in(const Results& results) const;                                 // all of them, as many examples as are wanted
  void refuse_fewer(const Results& before, const std::string& folder) const;  // UsageError where the limit takes examples from results

 private:
  void find(const EvalArgs& args, const EvalConfig& config);
  void check(const EvalArgs& args);
  void check_texts(const RunTokenizer& tokenizer) const;
  const TaskScores* scores_in(const Results& results, size_t task) const;  // good ones of this version; null: none

  TaskOptions options_;
  std::string limit_setting_;
  std::optional<TaskLibrary> library_;
  std::vector<const Task*> tasks_;
  std::vector<CheckedTask> checked_;
  std::unique_ptr<sandbox::Sandbox> sandbox_;
};

}  // namespace hlat
