// The few-shot examples of a subtask: reads their records once, draws some for each question and writes them as text.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "task/python_random.h"
#include "task/read_records.h"
#include "task/task_file.h"

namespace hlat {

class FewShotTexts {
 public:
  // `from_data`: the questions may be among the records, and none is its own example: one more is drawn and the question left out.
  // `write` makes the text of one, with the delimiter behind it. There must be as many records as records_needed() says.
  using Write = std::function<std::string(const TaskRecord&)>;
  FewShotTexts(std::vector<TaskRecord> records, int64_t count, bool first, bool from_data, uint64_t seed, Write write);

  static size_t records_needed(int64_t count, bool from_data);

  // For the next question; questions are asked for in their order, as each draws from the same stream of random numbers. UsageError names
  // a broken record.
  std::string next(const Json& question);
  int64_t left_out() const { return left_out_; }  // examples that the latest question got too few: more than one record equals it

 private:
  const std::string& text(size_t number);

  std::vector<TaskRecord> records_;
  std::vector<std::optional<std::string>> texts_;
  size_t count_;
  int64_t left_out_ = 0;
  bool first_;
  bool from_data_;
  PythonRandom random_;
  Write write_;
};

}  // namespace hlat
