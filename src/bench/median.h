// The median of measurements; of an even number the mean of the two in the middle.
#pragma once

#include <algorithm>
#include <vector>

namespace hlat {

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

}  // namespace hlat
