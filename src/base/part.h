// How n things are shared by `count` holders: consecutive shares, the first n % count of them one larger. So holder 0
// never has less than another.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hlat {

struct Part {
  int64_t begin = 0;
  int64_t count = 0;
  int64_t end() const { return begin + count; }
  bool operator==(const Part&) const = default;
};

constexpr Part part_of(int64_t n, int64_t index, int64_t holders) {
  const int64_t base = n / holders, extra = n % holders;
  return {.begin = index * base + std::min(index, extra), .count = base + (index < extra ? 1 : 0)};
}

}  // namespace hlat
