#include "runtime/loop_tasks.h"

#include <fmt/ranges.h>

#include "base/format.h"
#include "base/machine.h"
#include "runtime/from_rank_0.h"

namespace hlat {

namespace {

EncodingRules rules_for(const RunTokenizer& tokenizer, int64_t length) {
  return {.bos = tokenizer.adds_bos(), .begin = tokenizer.bos(), .end = tokenizer.eos(), .max_length = length};
}

std::string recorded_name(const Metric& metric) { return metric.filter == "none" ? metric.name : metric.name + "_" + metric.filter; }

}  // namespace

LoopTasks::LoopTasks(const Config& config, Comm& world) : config_(config), world_(world), tokenizer_(config, "", {}, false) {
  options_.tasks.data = config.eval.data;
  options_.tasks.limit = config.eval.limit;
  options_.chunk_tokens = 4 * config.train.micro_batch * config.train.seq_len;  // a signal waits for no more than these
  from_rank_0(world, [&] {
    check_tasks();
    return std::string();
  });
}

void LoopTasks::place(Executor& executor) {
  passes_.emplace(executor, kv_limits(config_));
  model_.emplace(*passes_);
  texts_.emplace(*model_, tokenizer_.get(), rules_for(tokenizer_, passes_->limits().length), world_);
  passes_->rehearse();
}

void LoopTasks::check_tasks() {
  library_ = std::make_unique<TaskLibrary>(config_.eval.task_dir);
  const std::vector<std::string> names = split_task_names(config_.eval.tasks);
  if (names.empty()) throw UsageError("eval.tasks names no task; hlat eval --list shows those there are");
  tasks_ = library_->find(names);
  std::string problems;
  for (const Task* task : tasks_) {
    const TaskInfo& info = task->info();
    if (info.kind == TaskKind::code)
      problems +=
          fmt::format("\neval.tasks: {} runs programs, which a training run does not: hlat eval does, on its checkpoints", info.name);
    for (const std::string& file : task->missing(options_.tasks))
      problems += fmt::format("\neval.tasks: {} needs {}, which is not in eval.data = {}", info.name, file, config_.eval.data);
  }
  if (!problems.empty()) throw UsageError(problems.substr(1));
  check_examples(tasks_, options_.tasks);
}

bool LoopTasks::due(int64_t step) const {
  const EvalConfig& e = config_.eval;
  const int64_t tokens = config_.train.global_batch * config_.train.seq_len;
  const bool by_tokens = e.every_tokens > 0 && step * tokens / e.every_tokens > (step - 1) * tokens / e.every_tokens;
  return (e.every > 0 && step % e.every == 0) || by_tokens || (e.at_end && step == config_.train.steps);
}

LoopEvaluation LoopTasks::after(int64_t step, const std::function<bool()>& stop) {
  if (!due(step)) return {};
  const double begin = now_s();
  Fp8Weights& weights = passes_->executor().fp8();
  weights.widen();
  const TaskRunResult result = run_tasks(*texts_, tasks_, options_, {.stop = stop});
  weights.narrow();
  LoopEvaluation found;
  found.stopped = result.stopped;
  if (result.stopped) found.line = fmt::format("step {}: the evaluation of tasks was stopped", step);
  if (result.stopped || result.tasks.empty()) return found;
  int64_t examples = 0;
  for (const TaskResult& task : result.tasks) {
    examples += task.examples();
    if (!task.error.empty()) found.warnings.push_back(fmt::format("step {}: task {}: {}", step, task.info.name, task.error));
    for (const std::string& words : task.warnings())
      if (warned_.insert(words).second) found.warnings.push_back(words);
    std::vector<std::string> shown;
    for (size_t i = 0; i < task.metrics.size(); ++i) {
      const std::string name = recorded_name(task.info.metrics[i]);
      found.values.emplace_back(task.info.name + "/" + name, task.metrics[i].value);
      shown.push_back(fmt::format("{} {:.3f}", name, task.metrics[i].value));
    }
    found.line += fmt::format("{} {}; ", task.info.name, task.error.empty() ? fmt::format("{}", fmt::join(shown, ", ")) : "failed");
  }
  found.line =
      fmt::format("step {}: {}{} example{} in {}", step, found.line, examples, examples == 1 ? "" : "s", format_duration(now_s() - begin));
  return found;
}

}  // namespace hlat
