// The middle of measurements and how far they spread, which single far values do not move.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace hlat {

// Of an even number the upper of the two in the middle; 0 of none.
inline double upper_median(std::vector<double> v) {
  if (v.empty()) return 0;
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

// Of an even number the mean of the two in the middle; 0 of none.
inline double median(std::vector<double> v) {
  if (v.empty()) return 0;
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return v.size() % 2 == 1 ? *middle : (*std::max_element(v.begin(), middle) + *middle) / 2;
}

// The median distance from a value, scaled so that it is the standard deviation of normal values. middle: which median.
inline double median_deviation(std::vector<double> v, double from, double (*middle)(std::vector<double>) = upper_median) {
  for (double& x : v) x = std::abs(x - from);
  return 1.4826 * middle(std::move(v));
}

}  // namespace hlat
