// One subtask of a task on a model: its examples are asked in chunks, judged and logged, and become numbers.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "eval/sample_log.h"
#include "eval/text_model.h"
#include "task/task.h"

namespace hlat {

struct TaskRunOptions {
  TaskOptions tasks;
  ProgramRunner run_program = {};      // for tasks of kind code
  int judge_threads = 1;               // that run programs
  int64_t chunk_tokens = 65536;        // asked at a time, about; what texts have in common counts once
  std::filesystem::path samples = {};  // folder of the per-sample logs; empty: none
  std::string by = {};                 // stands in them for the model and the way it is asked
};

struct SubtaskResult {
  std::string name;
  std::vector<Estimate> metrics;  // one for each of TaskInfo::metrics; none where there is an error
  int64_t examples = 0;           // that were judged
  int64_t available = 0;          // in the data
  int64_t reused = 0;             // of these, with answers of an earlier run
  int64_t truncated = 0;          // requests whose context was cut on the left
  int64_t first_truncated = 0;    // record of the first of them
  int64_t shortened = 0;          // requests that got fewer new tokens than the task wants
  int64_t lacking_shots = 0;      // examples that got fewer few-shot examples than the task wants
  std::string error = {};
};

// A task cannot be evaluated; the run goes on.
struct TaskFailed {
  std::string words;
};
// Between two chunks, because that was asked for.
struct Stopped {
  int64_t examples = 0;  // that have been judged; a log has kept them
};

// Errors of the data or the numbers are the task's own.
template <class Work>
auto of_task(const std::string& where, const Work& work) {
  try {
    return work();
  } catch (const Error& e) {
    throw TaskFailed{where.empty() ? e.what() : where + ": " + e.what()};
  }
}

class SubtaskRun {
 public:
  SubtaskRun(TextModel& model, const Task& task, std::string name, const TaskRunOptions& options)
      : model_(model), task_(task), options_(options), result_{.name = std::move(name), .metrics = {}} {}

  // stop() and progress(examples done) between chunks.
  SubtaskResult run(SampleLog* log, const std::function<void(int64_t)>& progress, const std::function<bool()>& stop);

 private:
  struct Chunk {
    std::vector<Sample> samples;
    std::vector<std::vector<EncodedRequest>> requests;  // of each
  };
  std::string where(const Example& example) const;
  std::vector<size_t> take_logged(SampleLog* log, const std::function<bool()>& stop);
  Chunk next_chunk(const std::vector<size_t>& open, size_t& at);
  void ask(Chunk& chunk, const std::function<void(int64_t)>& progress);
  void judge(Sample& sample);
  void judge_all(std::vector<Sample>& samples);
  void keep(const Sample& sample);

  TextModel& model_;
  const Task& task_;
  const TaskRunOptions& options_;
  SubtaskResult result_;
  std::vector<Example> examples_;
  std::vector<std::string> asks_;      // by example
  std::vector<Judgement> judgements_;  // by example
};

}  // namespace hlat
