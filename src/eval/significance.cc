#include "eval/significance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace hlat {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

double normal_p(double z) { return std::erfc(std::abs(z) / std::numbers::sqrt2); }

double mcnemar_p(int64_t only_first, int64_t only_second) {
  const int64_t n = only_first + only_second, fewer = std::min(only_first, only_second);
  if (2 * fewer >= n) return 1;
  const auto all = static_cast<double>(n);
  double tail = 0;  // of a binomial distribution with probability 1/2
  for (int64_t k = 0; k <= fewer; ++k) {
    const auto i = static_cast<double>(k);
    tail += std::exp(std::lgamma(all + 1) - std::lgamma(i + 1) - std::lgamma(all - i + 1) - all * std::numbers::ln2);
  }
  return std::min(1.0, 2 * tail);
}

double paired_p(std::span<const double> differences) {
  const auto n = static_cast<double>(differences.size());
  if (differences.size() < 2) return kUnknown;
  double mean = 0, squares = 0;
  for (const double d : differences) mean += d / n;
  for (const double d : differences) squares += (d - mean) * (d - mean);
  const double error = std::sqrt(squares / (n - 1) / n);
  if (error > 0) return normal_p(mean / error);
  return mean == 0 ? 1 : 0;
}

double unpaired_p(double difference, double error_first, double error_second) {
  const double error = std::hypot(error_first, error_second);
  return error > 0 ? normal_p(difference / error) : kUnknown;
}

}  // namespace hlat
