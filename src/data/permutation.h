// A keyed permutation of [0, n) that is computed, never stored: a Feistel network over the next power of two, walked until
// it comes back into the range (cycle walking; fewer than two turns on average from n = 128 on). An element costs about a microsecond.
#pragma once

#include <cstdint>

#include "base/rng.h"

namespace hlat {

class Permutation {
 public:
  Permutation(const NoiseKey& key, uint64_t n);
  uint64_t operator()(uint64_t i) const;  // i below n

 private:
  uint64_t turn(uint64_t i) const;

  NoiseKey key_;
  uint64_t n_;
  unsigned low_bits_, high_bits_;
};

}  // namespace hlat
