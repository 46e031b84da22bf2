// Values that FP8 could not hold: beyond its largest one, or too small for any but 0 (ops/fp8.h). By operand of linear layers, in all steps
// from one in which that is told to the next. Every step adds its counts on the device, whether it is measured or not, and nothing waits
// for them until they are told. They are integers in f64, exact up to 2^53.
#pragma once

#include <array>
#include <span>

#include "model/executor.h"
#include "record/monitors.h"

namespace hlat {

// What ranks add up: by Fp8Role the values that were stored, those that saturated, those that were lost. The shares are those of one rank.
using Fp8Counts = std::array<double, size_t{3} * kFp8Roles>;

// How often a tensor (units, kFp8Seen) has met inputs and gradients, and weights.
struct Fp8Times {
  double passes = 0, updates = 0;
};

// Of this rank. Zeros without FP8.
Fp8Counts fp8_counts(const Executor& executor, const Tensor& seen, Fp8Times times);

class Fp8Tally {
 public:
  // Takes memory from the io region. A policy without FP8 needs nothing, and add() does nothing.
  explicit Fp8Tally(Executor& executor);

  // At the end of a step: what Fp8State::met has of it. updated: of its weights too.
  void add(bool updated);
  // Of this rank since the last call; weights: else they are kept for the next one.
  Fp8Counts take(bool weights);

 private:
  Executor& executor_;
  Tensor seen_;  // (units, kFp8Seen): sums, of which the first column means nothing
  Fp8Times times_;
};

// The shares, of the counts of all ranks, of all operands or of those that come first.
void add_fp8(Monitors& monitors, std::span<const double> all);

}  // namespace hlat
