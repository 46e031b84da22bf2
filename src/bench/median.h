// Summaries of measurements.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

namespace hlat {

// Of an even number the mean of the two in the middle.
inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

// The mean without the largest tenth: what is often late counts, what another program did once does not.
inline double trimmed_mean(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  v.resize(v.size() - v.size() / 10);
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

}  // namespace hlat
