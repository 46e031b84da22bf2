#include "cli/eval_tasks.h"

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/hf/hf_import.h"
#include "checkpoint/hf/tokenizer_files.h"
#include "data/tokenizer/tokenizer.h"
#include "runtime/eval_model.h"

namespace hlat {

namespace fs = std::filesystem;

EvalTasks::EvalTasks(const EvalArgs& args, const fs::path& checkpoint) {
  const CheckpointIndex index = read_index(checkpoint);
  const Config config = evaluation_config(index, args.model.overrides, args.model.max_length);
  find(args, config.eval);
  check(args);
  const fs::path with_checkpoint = tokenizer_to_load(tokenizer_files_in(checkpoint / kTokenizerFolder));
  check_texts(RunTokenizer(config, args.model.tokenizer, with_checkpoint, index.find_record(kImportRecord) != nullptr));
}

void EvalTasks::find(const EvalArgs& args, const EvalConfig& config) {
  options_ = {.data = args.data.empty() ? config.data : args.data,
              .limit = args.limit.value_or(config.limit),
              .shots = args.shots,
              .fewshot_seed = args.fewshot_seed,
              .sampling_seed = args.seed};
  limit_setting_ = args.limit ? "--limit" : "eval.limit";
  const std::vector<std::string> names = args.tasks.empty() ? split_task_names(config.tasks) : args.tasks;
  if (names.empty()) throw UsageError("no tasks are given: --tasks names them, and hlat eval --list shows which there are");
  if (options_.data.empty()) throw UsageError("--data is not given: the folder with the files of evaluation data");
  library_.emplace(args.task_dir.empty() ? config.task_dir : args.task_dir);
  tasks_ = library_->find(names);
  check_data_folder(options_.data, args.data.empty() ? "eval.data" : "--data");
}

void EvalTasks::check(const EvalArgs& args) {
  std::string missing;
  for (const Task* task : tasks_)
    for (const std::string& file : task->missing(options_)) missing += fmt::format("\n  {}: {}", task->info().name, file);
  if (!missing.empty()) fail<UsageError>("data of these tasks is not in {}:{}", options_.data.string(), missing);
  for (const Task* task : tasks_) {
    if (task->info().kind != TaskKind::code) continue;
    if (!args.allow_code)
      fail<UsageError>("{} runs programs that the model wrote; --allow-code-execution allows that, in a sandbox", task->info().name);
    if (sandbox_ == nullptr) sandbox_ = std::make_unique<sandbox::Sandbox>();
  }
  checked_ = check_examples(tasks_, options_);
}

// One text of each task: what a tokenizer without these letters or words says of the first, it says of all.
void EvalTasks::check_texts(const RunTokenizer& tokenizer) const {
  std::string problems;
  for (size_t t = 0; t < tasks_.size(); ++t) try {
      const TextRequest& request = checked_[t].first.requests.at(0);
      std::vector<int32_t> ids;
      tokenizer.get().encoder()->encode(request.context + request.continuation, ids);
    } catch (const Error& e) {
      problems += fmt::format("\n  {}: {}", tasks_[t]->info().name, e.what());
    }
  if (!problems.empty())
    fail<UsageError>(
        "the model cannot read these tasks: its tokenizer, {}, cannot encode their texts. One that was trained on the embedded corpus "
        "knows "
        "that corpus's words alone; train with data.sources and data.tokenizer{}",
        tokenizer.name(), problems);
}

ProgramRunner EvalTasks::runner() const {
  if (sandbox_ == nullptr) return {};
  return [this](const std::string& program) { return sandbox_->run(program).outcome == sandbox::Outcome::passed; };
}

const TaskScores* EvalTasks::scores_in(const Results& results, size_t task) const {
  const TaskInfo& info = tasks_[task]->info();
  const TaskScores* scores = results.find(info.name);
  return scores != nullptr && scores->error.empty() && scores->version == info.version ? scores : nullptr;
}

bool EvalTasks::done_in(const Results& results) const {
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const TaskScores* scores = scores_in(results, t);
    if (scores == nullptr || scores->examples != examples(t)) return false;
  }
  return true;
}

void EvalTasks::refuse_fewer(const Results& before, const std::string& folder) const {
  if (options_.limit == 0) return;
  std::string fewer;
  for (size_t t = 0; t < tasks_.size(); ++t)
    if (const TaskScores* scores = scores_in(before, t); scores != nullptr && scores->examples > examples(t))
      fewer += fmt::format("\n  {}: {} there, {} now", tasks_[t]->info().name, scores->examples, examples(t));
  if (!fewer.empty())
    fail<UsageError>("{} has results of more examples than {} {} asks for; give another --out, or --limit of as many at least (0: all){}",
                     folder, limit_setting_, options_.limit, fewer);
}

}  // namespace hlat
