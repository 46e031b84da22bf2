// How far layouts may be from each other. Sums over ranks, shards and micro-batches are taken in another order than on one rank, nothing
// else differs.
// fp32: losses agree to a few ulps (1e-6), gradient norms to 1e-5. Adam divides a gradient by its own size, so an element
// whose gradient is rounding noise may move by up to lr per step in either direction: single weights may differ by that,
// but over a tensor the root mean square difference stays below 2 % of lr.
// bf16: partial sums are rounded to bf16 (8 bits) before they are added, so each sum carries an error of 0.4 % per rank; weights
// themselves are rounded, and may land on neighbouring values: 2 % in losses' distance and 5 % in gradient norms.
// fp8: as bf16, and gradient norms to 15 % (up to 8 % in the table, of fp8_sr over tp).
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "train/train_step.h"

namespace hlat {

// Of a tensor's gradient, and of how far steps moved it, relative to the other layout's (layout_equivalence_test.cc says why).
constexpr double kGradientNoise = 0.05, kMovementNoise = 0.25;  // up to 0.018 and 0.22 in the table
// FP8 operands have 3 or 2 bits of mantissa: a difference in the last bit of bf16 before a rounding is one of 6 or 12 % after it, for one
// value in thirty. Over the layers of these models, which have large initial weights, layouts whose sums are rounded in another place
// differ by as much as FP8 itself is off.
constexpr double kFp8GradientNoise = 0.35, kFp8MovementNoise = 0.6;

// Norm of a - b over that of b - c.
inline double relative_distance(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& c) {
  double distance = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) distance += (a[i] - b[i]) * (a[i] - b[i]), size += (b[i] - c[i]) * (b[i] - c[i]);
  return std::sqrt(distance / size);
}

inline double rms_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

inline double most_rms_difference(bool fp32, double lr) { return (fp32 ? 0.02 : 2.0) * lr; }

// Losses and norms of the same steps.
inline void expect_near(const std::vector<StepResult>& many, const std::vector<StepResult>& one, bool fp32, bool fp8 = false) {
  ASSERT_EQ(many.size(), one.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(many[i].loss, one[i].loss, (fp32 ? 1e-6 : 2e-2) * one[i].loss) << "step " << i + 1;
    EXPECT_NEAR(many[i].grad_norm, one[i].grad_norm, (fp32 ? 1e-5 : fp8 ? 0.15 : 5e-2) * one[i].grad_norm) << "step " << i + 1;
    EXPECT_NEAR(many[i].param_norm, one[i].param_norm, (fp32 ? 1e-6 : 1e-3) * one[i].param_norm) << "step " << i + 1;
  }
}

}  // namespace hlat
