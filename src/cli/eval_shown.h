// How far an evaluation is, with an estimate of what is left: on a terminal one line, redrawn; in a pipe a line every half minute.
// Tasks that are done are told by their caller, between end_line() and the next redraw.
#pragma once

#include <array>
#include <ostream>
#include <string>
#include <vector>

#include "cli/live_line.h"
#include "record/progress.h"
#include "task/task.h"

namespace hlat {

class EvalShown {
 public:
  struct Part {
    std::string name;
    TaskKind kind = TaskKind::choice;
    int64_t examples = 0;
  };
  EvalShown(std::ostream& out, ProgressOptions options, std::vector<Part> parts);

  void show(size_t task, int64_t examples);  // of it that are done
  void end_line() { line_.end(); }           // what is written next starts on a line of its own

 private:
  double left_s(size_t task, int64_t examples) const;

  // What examples of a kind of task have taken so far: those of other kinds say little about them.
  struct Pace {
    int64_t examples = 0;
    double seconds = 0;
  };
  LiveLine line_;
  std::vector<Part> parts_;
  std::array<Pace, 5> pace_{};  // by TaskKind
  size_t task_ = 0;
  int64_t examples_ = 0;
  double at_;
};

}  // namespace hlat
