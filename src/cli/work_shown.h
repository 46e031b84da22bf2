// How far long work on files is: one line on a terminal, redrawn, and gone when the work is done. In a pipe nothing is shown.
#pragma once

#include <functional>
#include <mutex>
#include <ostream>
#include <string>

#include "cli/live_line.h"
#include "record/progress.h"

namespace hlat {

class WorkShown {
 public:
  WorkShown(std::string what, uint64_t all_bytes);  // on stderr
  WorkShown(std::ostream& out, ProgressOptions options, std::string what, uint64_t all_bytes);

  void add(uint64_t bytes);  // from any thread
  std::function<void(uint64_t)> done() {
    return [this](uint64_t bytes) { add(bytes); };
  }

 private:
  LiveLine line_;
  std::string what_;
  uint64_t all_bytes_, bytes_ = 0;
  double begin_;
  std::mutex mutex_;
};

}  // namespace hlat
