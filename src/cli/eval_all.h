// Tasks over the saved checkpoints of a run: the curve of what it learned, by tokens seen.
#pragma once

#include <filesystem>
#include <vector>

#include "cli/eval_args.h"
#include "cli/eval_signals.h"

namespace hlat {

// Those of a run that are whole, and copies of weights at steps that have no other; by step. UsageError where there is none.
std::vector<std::filesystem::path> checkpoints_of(const std::string& run);

// Evaluates each that is not evaluated yet, into RUN/eval/step_N, and prints the curve, which is also in RUN/eval/curve.json. A checkpoint
// that cannot be evaluated is told, and the next one goes on. Collective. Whether all went well, on rank 0; Interrupted by a signal.
bool evaluate_all(const EvalArgs& args, Session& session, EvalSignals& signals);

}  // namespace hlat
