// What is told of the steps of a model on all ranks: that replicas and shared weights stay equal, that the first update has the size AdamW
// gives it, and that recomputation changes no bits.
#pragma once

#include "selfcheck/check_model.h"
#include "selfcheck/local_parts.h"
#include "selfcheck/verdict.h"

namespace hlat {

// A first step, on one rank.
struct FirstStep {
  StepResult result;
  std::vector<LocalPart> before, gradients, after;  // masters or weights
  std::vector<StateHash> gradient_bits, start_bits, end_bits;
};
FirstStep take_first_step(CheckModel& model);  // from initial weights

// |update| of the first step: with bias correction each element moves by lr g / (|g| + eps), g the clipped gradient, and by its decay. What
// is stored has the resolution of its type.
ModelVerdict check_updates(const SelfCheckRun& run, CheckModel& model, const FirstStep& first);

// After some steps, over dp. Collective, as all below.
ModelVerdict check_replicas(const SelfCheckRun& run, CheckModel& model, int64_t steps);
// What ranks along other axes hold too, and a tied table: equal now, and moved by the first step where its update is more than rounding.
// tied_words: OneRankStep.
ModelVerdict check_shared(const SelfCheckRun& run, CheckModel& model, const FirstStep& first, const std::string& tied_words);

// A model that recomputes otherwise, against the gradients of the first step.
ModelVerdict check_recompute(const SelfCheckRun& run, const FirstStep& first);

}  // namespace hlat
