// A segment of a call as a kernel reads it: its tokens, and where the keys of its text lie in the cache. KvSegment in ops/ops.h is the
// layout and says what the members mean.
#pragma once

#include <cstdint>

namespace hlat {

struct CacheSegment {
  static constexpr int kInts = 12;
  int first, count, keys;
  int end[3], shift[4];  // key j of run r lies in slot j + shift[r]

  __device__ CacheSegment(const int32_t* segments, int64_t index) {
    const int32_t* p = segments + index * kInts;
    first = p[0], count = p[1], keys = p[2];
    shift[0] = p[4];
#pragma unroll
    for (int r = 0; r < 3; ++r) {
      end[r] = p[8 + r];
      shift[r + 1] = p[5 + r] - end[r];
    }
  }
  __device__ int64_t slot(int key) const {
    int by = shift[0];
#pragma unroll
    for (int r = 0; r < 3; ++r) by = key >= end[r] ? shift[r + 1] : by;
    return int64_t{key} + by;
  }
  // The keys that a query of it sees: the first so many.
  __device__ int seen(int query) const { return keys - count + query + 1; }
};

}  // namespace hlat
