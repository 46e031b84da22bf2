// Global tensors that ranks put together element by element: those that no rank has put keep kUnset.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace hlat {

inline constexpr double kUnset = -1e300;

inline void expect_whole(const std::map<std::string, std::vector<double>>& tensors) {
  for (const auto& [name, values] : tensors)
    EXPECT_EQ(std::count(values.begin(), values.end(), kUnset), 0) << name << " has elements that no rank holds";
}

}  // namespace hlat
