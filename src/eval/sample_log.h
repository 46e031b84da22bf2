// The per-sample log of a task, SAMPLES/TASK.jsonl: one object for each example, with what was asked, what the model answered and how that
// was judged. A later run takes the answers from it. Lines are appended whole; part of a line that a process left when it died is cut off.
//
//   task, subtask, doc_id   which example                       ask   hash of all that was asked, and of the record
//   doc                     the record as the data has it       by    whose answers: the model and how it is asked
//   context                 where all requests have the same    requests   what differs between them, and the answer to each
//   target, filtered        what is right, what was compared    metrics    values by metric; weights where one is not 1
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "task/task.h"

namespace hlat {

// All that is asked for an example, and its record, as a number.
std::string ask_hash(const Example& example);

struct Sample {
  const Example* example = nullptr;
  std::string ask;
  std::vector<Answer> answers;
  Judgement judgement;
};

class SampleLog {
 public:
  // Reads what there is of this task. `by` stands for the model and the way it is asked. FaultError or UsageError: fail_storage.
  SampleLog(const std::filesystem::path& folder, const TaskInfo& task, std::string by);

  // Answers to an example of a subtask; null: there are none, or something else was asked, or another model.
  const std::vector<Answer>* find(const std::string& subtask, const Example& example, const std::string& ask);
  // One write for all. What find() found to be of something else goes.
  void add(const std::string& subtask, std::span<const Sample> samples);

 private:
  using Key = std::pair<std::string, int64_t>;  // subtask, number of the example
  struct Logged {
    std::string ask, by;
    std::vector<Answer> answers;
  };
  void read();
  void remove_stale();

  std::filesystem::path file_;
  const TaskInfo& task_;
  std::string by_;
  std::map<Key, Logged> logged_;
  std::set<Key> stale_;
  bool broken_ = false;  // it has lines that are no samples
};

}  // namespace hlat
