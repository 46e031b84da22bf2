// How far off a mean of paired differences may be: its 95 % confidence interval by Student's t, mean ± t(n - 1) s / sqrt(n), with the
// sample standard deviation s of the n differences. Pairs see the same batches, so what a seed does to both cancels.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hlat {

struct Interval {
  double low = 0, high = 0;
};

double student_t975(size_t freedom);  // t with P(|T| < t) = 0.95; freedom at least 1

std::optional<Interval> paired_interval(const std::vector<double>& differences);  // of at least two

}  // namespace hlat
