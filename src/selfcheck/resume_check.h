// A run that goes on from a checkpoint against one that was not interrupted: all bits of weights and optimizer state.
#pragma once

#include "selfcheck/check_model.h"
#include "selfcheck/verdict.h"

namespace hlat {

// The model stands after step `done`: saves it in run.config.run.dir, makes a step, loads it and makes the step again. Collective.
ModelVerdict check_resume(const SelfCheckRun& run, CheckModel& model, int64_t done);

}  // namespace hlat
