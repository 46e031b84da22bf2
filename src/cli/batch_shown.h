// How far a batch of prompts is, with an estimate of what is left: on a terminal one line, redrawn; in a pipe a line every half minute.
#pragma once

#include <ostream>

#include "record/progress.h"

namespace hlat {

class BatchShown {
 public:
  BatchShown(std::ostream& out, ProgressOptions options, size_t before, size_t all);  // before: done by an earlier call
  ~BatchShown() { end_line(); }
  BatchShown(const BatchShown&) = delete;
  BatchShown& operator=(const BatchShown&) = delete;

  void show(size_t done);  // of all
  void end_line();         // what is written next starts on a line of its own

 private:
  std::ostream& out_;
  ProgressOptions options_;
  size_t before_, all_;
  double begin_, shown_at_;
  bool line_open_ = false;
};

}  // namespace hlat
