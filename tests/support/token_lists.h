// Lists of token ids to make prompts and texts of.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace hlat::test {

// first, first + 1, ...
inline std::vector<int32_t> counted_tokens(int64_t n, int32_t first) {
  std::vector<int32_t> list(static_cast<size_t>(n));
  for (size_t i = 0; i < list.size(); ++i) list[i] = first + static_cast<int32_t>(i);
  return list;
}

inline std::vector<int32_t> random_tokens(RandomStream& random, int64_t count, int64_t vocab) {
  std::vector<int32_t> list(static_cast<size_t>(count));
  for (int32_t& id : list) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocab)));
  return list;
}

inline std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace hlat::test
