// IEEE half precision as files of others have it. It is only read: every value is one of float too.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace hlat {

struct f16 {
  uint16_t bits = 0;
};

inline float to_float(f16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16, exponent = (x.bits >> 10) & 0x1fu, fraction = x.bits & 0x3ffu;
  if (exponent == 0) return std::copysign(static_cast<float>(fraction) * 0x1p-24f, sign != 0 ? -1.0f : 1.0f);
  const uint32_t wide = exponent == 0x1fu ? 0xffu : exponent + 112;  // infinity and NaN; 112: 127 - 15
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

}  // namespace hlat
