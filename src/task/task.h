// A task: one YAML file that says where its records lie, what is asked of a model for each, and how the answers are judged (docs/tasks.md).
// A task whose data file has a `*` has one subtask for each file that matches; any other has one subtask, named like itself.
// All problems of a task file or of its data are told together, in one UsageError that names file and line of each.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "task/example.h"
#include "task/metric.h"

namespace hlat {

struct TaskFile;  // the parsed YAML (task/task_file.h)

enum class TaskKind : uint8_t {
  choice,      // which of several continuations is likeliest
  likelihood,  // how likely one continuation is
  perplexity,  // how likely a whole text is
  generate,    // a generated text is compared with references
  code,        // generated programs are run
};

struct TaskInfo {
  std::string name;
  std::string title;          // for people: "ARC-challenge"
  std::string group;          // column of the table: MMLU, BBH, CR, WK, RC, Math, Code, "truth and bias", LM, or a user's own
  bool in_group_mean = true;  // false: a variant that is shown beside its group and not counted in it
  int64_t version = 1;        // of the definition
  TaskKind kind = TaskKind::choice;
  int64_t shots = 0;  // as defined; TaskOptions may ask for another number
  std::vector<Metric> metrics;
  size_t headline = 0;  // the metric of the table, an index into metrics
  bool has_subtasks = false;
  std::string origin;  // the file it was read from, or "built in"
};

struct TaskOptions {
  std::filesystem::path data;         // folder that the task's file names start from
  int64_t limit = 0;                  // at most so many examples of each subtask, the first ones; 0: all
  std::optional<int64_t> shots = {};  // instead of the task's own number
  uint64_t fewshot_seed = 1234;
  uint64_t sampling_seed = 0;  // of generated texts that are sampled
};

// Runs a program in the sandbox; whether it ended well.
using ProgramRunner = std::function<bool(const std::string& program)>;

// The verdict on one example.
struct Judgement {
  std::vector<MetricValue> values;    // one for each of TaskInfo::metrics
  std::string target;                 // what would have been right
  std::vector<std::string> filtered;  // what was compared with it: the choice taken, or each filter's answer
};

class Task {
 public:
  // Tasks by their names come from task/library.h, which resolves `include`.
  explicit Task(std::unique_ptr<const TaskFile> file);
  ~Task();
  Task(Task&&) noexcept;
  Task& operator=(Task&&) noexcept;

  const TaskInfo& info() const;

  // Data files that are needed and not there; patterns as the task has them. Few-shot data counts when there are shots.
  std::vector<std::string> missing(const TaskOptions& options) const;

  // Data files of a subtask that are there: of its questions, and of few-shot examples where there are shots.
  std::vector<std::string> files(const std::string& subtask, const TaskOptions& options) const;

  // In the order of their names. UsageError where data is missing.
  std::vector<std::string> subtasks(const TaskOptions& options) const;

  // Records of one subtask, without making examples of them: what `hlat eval --list` shows.
  int64_t count(const std::string& subtask, const TaskOptions& options) const;

  // The requests of an example are independent of `limit`. UsageError names every broken record by file and line.
  std::vector<Example> examples(const std::string& subtask, const TaskOptions& options) const;

  // `answers` are those to the example's requests, in their order. Thread-safe. `run` is needed by kind code alone.
  Judgement judge(const Example& example, std::span<const Answer> answers, const ProgramRunner& run = {}) const;

 private:
  std::unique_ptr<const TaskFile> file_;
};

}  // namespace hlat
