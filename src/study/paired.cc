#include "study/paired.h"

#include <cmath>
#include <numbers>
#include <numeric>

namespace hlat {
namespace {

// P(|T| < t) for a whole number of degrees of freedom, as a function of theta = atan(t / sqrt(freedom)): finite sums of powers of the
// cosine.
double share_within(double theta, size_t freedom) {
  const double sine = std::sin(theta), cosine = std::cos(theta);
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1, sum = 0;
  for (size_t k = odd ? 1 : 0; k + 2 <= freedom; k += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(k + 1) / static_cast<double>(k + 2);
  }
  return odd ? 2 / std::numbers::pi * (theta + sine * sum) : sine * sum;
}

}  // namespace

double student_t975(size_t freedom) {
  double low = 0, high = std::numbers::pi / 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (share_within(middle, freedom) < 0.95 ? low : high) = middle;
  }
  return std::tan(low) * std::sqrt(static_cast<double>(freedom));
}

std::optional<Interval> paired_interval(const std::vector<double>& differences) {
  const auto n = static_cast<double>(differences.size());
  if (differences.size() < 2) return {};
  const double mean = std::accumulate(differences.begin(), differences.end(), 0.0) / n;
  double squares = 0;
  for (const double d : differences) squares += (d - mean) * (d - mean);
  const double half = student_t975(differences.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return Interval{mean - half, mean + half};
}

}  // namespace hlat
