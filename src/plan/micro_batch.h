// train.micro_batch = auto: the largest micro-batch that fits, found by dry runs.
#pragma once

#include "plan/dry_run.h"
#include "plan/fit.h"

namespace hlat {

// The share of the available memory that a choice may fill: other programs and NCCL's communicators, which are made later and take theirs
// outside the plan, may leave less when the choice is checked.
inline constexpr double kChosenShare = 0.95;

// Of the divisors of a replica's share of the batch the largest whose plan fits that share on every stage; with a pipeline, of those that
// leave at least as many micro-batches as stages, where there are any. 1 when nothing fits. parallel.dp must be known.
int64_t largest_micro_batch(const Config& config, const PlanTarget& target, const Fit& fit);

// The micro-batch that is given, or the smallest that the other keys allow: for what computes some of a step and needs not the fastest. 1
// when none is allowed.
int64_t smallest_micro_batch(const Config& config);

// Whether config.train.micro_batch goes with the other keys and its plan fits on every stage.
bool micro_batch_fits(const Config& config, const PlanTarget& target, const Fit& fit);

}  // namespace hlat
