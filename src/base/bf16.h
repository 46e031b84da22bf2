// bfloat16 as a storage type: the upper half of an IEEE float. Arithmetic is done in float.
#pragma once

#include <bit>
#include <cstdint>

namespace hlat {

struct bf16 {
  uint16_t bits = 0;
};

inline float to_float(bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

// Round to nearest, ties to even; NaN stays NaN (quiet).
inline bf16 to_bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return bf16{static_cast<uint16_t>((u >> 16) | 0x40u)};
  return bf16{static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

}  // namespace hlat
