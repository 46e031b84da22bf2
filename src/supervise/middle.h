// Median and spread of measurements, which single far values do not move.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace hlat {

// Of an even number the mean of the two in the middle; 0 of none.
inline double middle(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

// The median distance from the median, scaled so that it is the standard deviation of normal values.
inline double spread(const std::vector<double>& v) {
  const double m = middle(v);
  std::vector<double> far;
  far.reserve(v.size());
  for (const double x : v) far.push_back(std::abs(x - m));
  return 1.4826 * middle(far);
}

}  // namespace hlat
