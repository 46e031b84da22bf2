#include "base/rng.h"

#include <cmath>
#include <numbers>

namespace hlat {

namespace {
__extension__ using Wide = unsigned __int128;
}

uint64_t hash_name(std::string_view name) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9ull;
  return h ^ (h >> 32);
}

uint32_t RandomStream::next_u32() {
  const auto words = philox_block(key_, position_ / 4);
  return words[position_++ % 4];
}

double RandomStream::next_unit() { return next_u32() * 0x1p-32; }

uint64_t RandomStream::below(uint64_t bound) {
  // Multiply-shift on 64 bits: the bias is below 2^-32 for any bound used here (bounds are document counts).
  const uint64_t wide = (static_cast<uint64_t>(next_u32()) << 32) | next_u32();
  return static_cast<uint64_t>((static_cast<Wide>(wide) * bound) >> 64);
}

std::array<float, 4> normal_block(const NoiseKey& key, uint64_t block) {
  const auto w = philox_block(key, block);
  std::array<float, 4> out{};
  for (size_t pair = 0; pair < 2; ++pair) {
    const double u = (w[2 * pair] + 1.0) * 0x1p-32;  // (0, 1]: the logarithm stays finite
    const double angle = 2.0 * std::numbers::pi * (w[2 * pair + 1] * 0x1p-32);
    const double radius = std::sqrt(-2.0 * std::log(u));
    out[2 * pair] = static_cast<float>(radius * std::cos(angle));
    out[2 * pair + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return out;
}

}  // namespace hlat
