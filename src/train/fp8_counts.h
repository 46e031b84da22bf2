// Values that FP8 could not hold in a step: beyond its largest one, or too small for any but 0 (ops/fp8.h). By operand of linear layers.
#pragma once

#include <array>
#include <span>

#include "model/executor.h"
#include "record/monitors.h"

namespace hlat {

// What ranks add up: by Fp8Role the values that were stored, those that saturated, those that were lost. The shares are those of one rank.
using Fp8Counts = std::array<double, size_t{3} * kFp8Roles>;

// Of this rank in the step that has just updated its weights, or has left that out: what is told of weights is then of the update before.
// Zeros without FP8.
Fp8Counts fp8_counts(const Executor& executor);

// The shares, of the counts of all ranks, of all operands or of those that come first.
void add_fp8(Monitors& monitors, std::span<const double> all);

}  // namespace hlat
