// How far a batch of prompts is, with an estimate of what is left: on a terminal one line, redrawn; in a pipe a line every half minute.
#pragma once

#include <ostream>

#include "cli/live_line.h"
#include "record/progress.h"

namespace hlat {

class BatchShown {
 public:
  BatchShown(std::ostream& out, ProgressOptions options, size_t before, size_t all);  // before: done by an earlier call

  void show(size_t done);           // of all
  void end_line() { line_.end(); }  // what is written next starts on a line of its own

 private:
  LiveLine line_;
  size_t before_, all_;
  double begin_;
};

}  // namespace hlat
