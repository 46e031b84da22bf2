// Signals that end hlat eval and hlat generate. While tasks run, the first one waits until it is asked for: hlat eval ends behind the chunk
// under way, on all ranks, with all of it saved, hlat generate behind a token. Before that, and for a second one, the process ends at once.
// In a conversation Ctrl-C ends the text, and the next one comes.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/signals.h"
#include "runtime/launch.h"

namespace hlat {

class EvalSignals {
 public:
  // Before any other thread is started. waits: how a signal that waits is told.
  explicit EvalSignals(const Launch& launch, std::string waits = ": ends behind the examples under way; a second signal ends it at once");

  void tasks_run(bool run) {
    state_->text_ends = false;
    state_->run = run;
  }
  void converse() { state_->converses = true; }
  bool text_ends() const { return state_->text_ends; }  // that of the latest tasks_run(true), in a conversation
  int asked() const;                                    // 0: none

 private:
  struct State {
    std::atomic<bool> run = false, converses = false, text_ends = false;
  };
  std::shared_ptr<State> state_;  // the answer to a signal may outlive this
  EndSignals signals_;
};

}  // namespace hlat
