#include "health/rounding.h"

#include <cmath>

namespace hlat {

namespace {

constexpr double kHalfUlpBf16 = 0x1p-8, kTinyBf16 = 0x1p-134;  // below the smallest normal number the error of a store has a fixed size

}  // namespace

double rounding_bound(DType dtype, int ranks, int64_t n, double squares_before, double squares_after) {
  const double u = dtype == DType::f64 ? 0x1p-53 : 0x1p-24, v = dtype == DType::bf16 ? kHalfUlpBf16 : 0, s = ranks;
  const double spread = s * (s - 1) * u * u * squares_before + v * v * squares_after;
  return 8 * std::sqrt(spread) + (dtype == DType::bf16 ? static_cast<double>(n) * kTinyBf16 : 0);
}

double chained_rounding_bound(int ranks, int64_t n, double squares_before, double squares_of_sums) {
  const double s = ranks;
  const double mean = ((s + 1) / 2 - 1 / s) * std::sqrt(squares_of_sums);
  const double noise = std::sqrt((s - 2) * (2 * s + 9) / (12 * s) * squares_before);
  return kHalfUlpBf16 * (mean + 4 * noise) + (s - 1) * std::sqrt(static_cast<double>(n)) * kTinyBf16;
}

}  // namespace hlat
