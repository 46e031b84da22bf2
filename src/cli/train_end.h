// How a run ends: its steps, what is recorded and shown of them, and what becomes of a save whose disk hangs.
#pragma once

#include "checkpoint/saver.h"
#include "cli/run_guard.h"
#include "runtime/start_point.h"
#include "train/trainer.h"

namespace hlat {

struct RunEnd {
  int signal = 0;  // that ended it; 0: none
  bool saved = false;
};

// A run whose last step is done; more steps would go on with it.
RunEnd tell_finished(const Config& config, const StartPoint& from, bool leads);

// From the first step to the end. The saver's own end waits for its disk; where that hangs, the process ends without it.
RunEnd train_to_end(bool json, const Config& config, TrainSetup& setup, TrainState& state, const Saver* saver, RunGuard& guard);

}  // namespace hlat
