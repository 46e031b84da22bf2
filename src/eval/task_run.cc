#include "eval/task_run.h"

#include <algorithm>
#include <memory>

namespace hlat {

namespace {

// One number of each metric, where all subtasks have theirs.
void conclude(TaskResult& result) {
  for (const SubtaskResult& s : result.subtasks)
    if (!s.error.empty()) result.error += (result.error.empty() ? "" : "\n") + s.error;
  if (!result.error.empty()) return;
  for (size_t m = 0; m < result.info.metrics.size(); ++m) {
    std::vector<Estimate> parts;
    for (const SubtaskResult& s : result.subtasks) parts.push_back(s.metrics[m]);
    result.metrics.push_back(parts.size() == 1 ? parts.front() : pooled(parts));
  }
}

TaskResult run_task(TextModel& model, const Task& task, const TaskRunOptions& options, const std::function<void(int64_t)>& progress,
                    const std::function<bool()>& stop) {
  TaskResult result{.info = task.info(), .shots = options.tasks.shots.value_or(task.info().shots), .metrics = {}, .subtasks = {}};
  std::unique_ptr<SampleLog> log;
  if (!options.samples.empty()) log = std::make_unique<SampleLog>(options.samples, task.info(), options.by);
  try {
    if (task.info().kind == TaskKind::code && !options.run_program)
      throw TaskFailed{task.info().name + " runs programs that the model wrote, which is not allowed here"};
    const std::vector<std::string> names = of_task("", [&] { return task.subtasks(options.tasks); });
    int64_t done = 0;
    for (const std::string& name : names) {
      const auto told = [&](int64_t examples) {
        if (progress) progress(done + examples);
      };
      result.subtasks.push_back(SubtaskRun(model, task, name, options).run(log.get(), told, stop));
      done += result.subtasks.back().examples;
    }
    if (names.empty()) throw TaskFailed{task.info().name + " has no data"};
  } catch (const TaskFailed& failed) {
    result.error = failed.words;
  } catch (Stopped& stopped) {
    stopped.examples += result.examples();
    throw;
  }
  conclude(result);
  return result;
}

TaskRunResult run_all(TextModel& model, std::span<const Task* const> tasks, const TaskRunOptions& options, const TaskRunHooks& hooks) {
  TaskRunResult result;
  for (size_t t = 0; t < tasks.size(); ++t) try {
      std::function<void(int64_t)> told;
      if (hooks.progress) told = [&, t](int64_t examples) { hooks.progress(t, examples); };
      result.tasks.push_back(run_task(model, *tasks[t], options, told, hooks.stop));
      if (hooks.finished) hooks.finished(result.tasks.back());
    } catch (const Stopped& stopped) {
      result.stopped = true, result.kept = stopped.examples;
      return result;
    }
  return result;
}

std::string count_text(int64_t count, const std::string& what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

}  // namespace

int64_t TaskResult::examples() const {
  int64_t all = 0;
  for (const SubtaskResult& s : subtasks) all += s.examples;
  return all;
}

std::vector<std::string> TaskResult::warnings() const {
  int64_t truncated = 0, shortened = 0, lacking = 0;
  const SubtaskResult* first = nullptr;
  for (const SubtaskResult& s : subtasks) {
    if (first == nullptr && s.truncated > 0) first = &s;
    truncated += s.truncated, shortened += s.shortened, lacking += s.lacking_shots;
  }
  std::vector<std::string> lines;
  if (truncated > 0)
    lines.push_back(fmt::format("{}: {} longer than the model reads, cut on the left; the first: {}, record {}", info.name,
                                count_text(truncated, "request") + (truncated == 1 ? " is" : " are"), first->name, first->first_truncated));
  if (shortened > 0)
    lines.push_back(fmt::format("{}: {} fewer new tokens than the task asks for: the model reads no more", info.name,
                                count_text(shortened, "request") + (shortened == 1 ? " gets" : " get")));
  if (lacking > 0)
    lines.push_back(fmt::format("{}: {} fewer than {} few-shot examples: others that were drawn equal the question", info.name,
                                count_text(lacking, "question") + (lacking == 1 ? " has" : " have"), shots));
  return lines;
}

std::vector<CheckedTask> check_examples(std::span<const Task* const> tasks, const TaskOptions& options) {
  std::vector<CheckedTask> all;
  std::string problems;
  for (const Task* task : tasks) try {
      CheckedTask checked;
      for (const std::string& subtask : task->subtasks(options)) {
        std::vector<Example> examples = task->examples(subtask, options);
        if (examples.empty()) fail<UsageError>("task {}: its data has no examples", subtask);
        if (checked.examples == 0) checked.first = std::move(examples.front());
        checked.examples += static_cast<int64_t>(examples.size());
      }
      if (checked.examples == 0) fail<UsageError>("task {} has no data", task->info().name);
      all.push_back(std::move(checked));
    } catch (const UsageError& e) {
      problems += std::string("\n") + e.what();
    }
  if (!problems.empty()) throw UsageError(problems.substr(1));
  return all;
}

TaskRunResult run_tasks(TextModel& model, std::span<const Task* const> tasks, const TaskRunOptions& options, const TaskRunHooks& hooks) {
  if (!model.leads()) {
    model.take_part();
    return {};
  }
  try {
    TaskRunResult result = run_all(model, tasks, options, hooks);
    model.finish();
    return result;
  } catch (...) {
    model.finish();
    throw;
  }
}

}  // namespace hlat
