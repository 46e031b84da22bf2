// Signals that end hlat eval. While tasks run, the first one ends it behind the chunk under way, on all ranks, with all of it saved; before
// that, and for a second one, the process ends at once.
#pragma once

#include <atomic>
#include <memory>

#include "base/signals.h"
#include "runtime/launch.h"

namespace hlat {

class EvalSignals {
 public:
  explicit EvalSignals(const Launch& launch);  // before any other thread is started

  void tasks_run(bool run) { *run_ = run; }
  int asked() const { return signals_.asked(); }  // 0: none

 private:
  std::shared_ptr<std::atomic<bool>> run_;  // the answer to a signal may outlive this
  EndSignals signals_;
};

}  // namespace hlat
