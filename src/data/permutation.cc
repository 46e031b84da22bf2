#include "data/permutation.h"

#include <bit>

#include "base/error.h"

namespace hlat {
namespace {

constexpr uint64_t kRounds = 8;
constexpr unsigned kFewestBits = 8;  // narrower halves leave some permutations out

}  // namespace

Permutation::Permutation(const NoiseKey& key, uint64_t n) : key_(key), n_(n) {
  HLAT_CHECK(n > 0 && n <= uint64_t{1} << 62, "a permutation of {}", n);
  const auto bits = std::max(kFewestBits, static_cast<unsigned>(std::bit_width(n - 1)));
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
}

// The halves swap places each round, so their widths do too.
uint64_t Permutation::turn(uint64_t i) const {
  unsigned low_bits = low_bits_, high_bits = high_bits_;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t low = i & ((uint64_t{1} << low_bits) - 1), high = i >> low_bits;
    const auto noise = philox_block(key_, low * kRounds + round);
    const uint64_t word = (static_cast<uint64_t>(noise[1]) << 32 | noise[0]) & ((uint64_t{1} << high_bits) - 1);
    i = low << high_bits | (high ^ word);
    std::swap(low_bits, high_bits);
  }
  return i;
}

uint64_t Permutation::operator()(uint64_t i) const {
  HLAT_CHECK(i < n_, "element {} of {}", i, n_);
  do i = turn(i);
  while (i >= n_);
  return i;
}

}  // namespace hlat
