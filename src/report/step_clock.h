// When the steps of a run ended, in seconds since the run began. metrics.jsonl has how long each took; events.jsonl has when each attempt
// was ready. Where the last step's time is known, from the file's own, what lies between the steps (validation, saves) is spread over
// them, so that times are right at both ends of an attempt and near within it.
#pragma once

#include <vector>

#include "record/goodput.h"
#include "record/run_curves.h"

namespace hlat {

// By line of `curves`; recorded_at: when the last one was written, seconds since 1970; 0: not known.
std::vector<double> step_clock(const RunCurves& curves, const RunAccount& run, double recorded_at);

}  // namespace hlat
