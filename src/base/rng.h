// Counter-based random numbers (Philox4x32-10, Salmon et al. 2011). A value is a pure function of
// (seed, stream name, purpose, step, element), so it does not depend on threads, ranks or order.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hlat {

// What the numbers are for; keeps streams of one tensor apart.
enum class Noise : uint32_t { init = 1, round_weight = 2, round_moment1 = 3, round_moment2 = 4, cast = 5, data = 6, sample = 7 };

// Identifies one random stream. `stream` is a hash of a tensor or lane name; `step` advances every optimizer step.
struct NoiseKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
  Noise purpose = Noise::init;
  uint32_t step = 0;
};

uint64_t hash_name(std::string_view name);  // FNV-1a with a final mix; stable for ever: it decides initial weights

// The Philox key words of a NoiseKey: seed and stream mixed to 64 bits.
inline std::array<uint32_t, 2> philox_key(const NoiseKey& k) {
  uint64_t h = k.seed * 0x9e3779b97f4a7c15ull ^ k.stream;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ull;
  h ^= h >> 32;
  return {static_cast<uint32_t>(h), static_cast<uint32_t>(h >> 32)};
}

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1), static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1],
         static_cast<uint32_t>(p0)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

// Four words for block `block` of a stream. Element e of a 16-bit stream is half-word e % 8 of block e / 8
// (word (e % 8) / 2, low half first); element e of a 32-bit stream is word e % 4 of block e / 4.
inline std::array<uint32_t, 4> philox_block(const NoiseKey& k, uint64_t block) {
  return philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), k.step, static_cast<uint32_t>(k.purpose)},
                philox_key(k));
}

// A small sequential reader over one stream, for data and sampling code off the hot path.
class RandomStream {
 public:
  explicit RandomStream(NoiseKey key, uint64_t position = 0) : key_(key), position_(position) {}
  uint32_t next_u32();
  double next_unit();              // uniform in [0, 1) with 32 bits
  uint64_t below(uint64_t bound);  // uniform in [0, bound)
  uint64_t position() const { return position_; }

 private:
  NoiseKey key_;
  uint64_t position_;
};

// Box-Muller normals for elements 4 * block .. 4 * block + 3 of a stream.
std::array<float, 4> normal_block(const NoiseKey& key, uint64_t block);

}  // namespace hlat
