// 8-bit floating-point numbers as storage types. E4M3: 4 bits of exponent, 3 of mantissa, no infinity, up to 448. E5M2: 5 and 2, up to 57344.
// Rounding is to the nearest, ties to even, with saturation; what is not finite becomes NaN. Every value is a bf16 value too.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace hlat {

struct f8e4m3 {
  uint8_t bits = 0;
};
struct f8e5m2 {
  uint8_t bits = 0;
};

inline constexpr float kLargestE4M3 = 448.0f, kLargestE5M2 = 57344.0f;

namespace fp8_detail {

// mantissa: bits of it; least: exponent of the smallest normal number.
template <int mantissa, int least>
inline uint8_t encode(float x, float largest) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint8_t>(u >> 24 & 0x80u);
  const float a = std::bit_cast<float>(u & 0x7fffffffu);
  if (!(a <= 3.4028234663852886e38f)) return static_cast<uint8_t>(sign | 0x7fu);
  if (a >= largest) {
    const auto top = static_cast<uint8_t>(mantissa == 3 ? 0x7e : 0x7b);
    return static_cast<uint8_t>(sign | top);
  }
  const float smallest = std::bit_cast<float>(static_cast<uint32_t>(127 + least) << 23);
  if (a < smallest) {  // subnormal: a multiple of 2^(least - mantissa); adding 2^23 of them rounds to the nearest even
    const float unit = std::bit_cast<float>(static_cast<uint32_t>(127 + least - mantissa + 23) << 23);
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(a + unit) - std::bit_cast<uint32_t>(unit)));
  }
  constexpr int drop = 23 - mantissa;
  const uint32_t v = std::bit_cast<uint32_t>(a);
  const uint32_t rounded = v + (1u << (drop - 1)) - 1u + (v >> drop & 1u);
  const uint32_t code = (rounded >> drop) - (static_cast<uint32_t>(127 + least - 1) << mantissa);
  const uint32_t most = mantissa == 3 ? 0x7eu : 0x7bu;
  return static_cast<uint8_t>(sign | (code < most ? code : most));
}

template <int mantissa, int least>
inline float decode(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24, code = bits & 0x7fu;
  const uint32_t exponent = code >> mantissa;
  if (mantissa == 3 ? code == 0x7f : code > 0x7c) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (mantissa == 2 && code == 0x7c) return std::bit_cast<float>(sign | 0x7f800000u);
  if (exponent == 0) {
    const float unit = std::bit_cast<float>(static_cast<uint32_t>(127 + least - mantissa) << 23);
    const float a = static_cast<float>(code) * unit;
    return sign != 0 ? -a : a;
  }
  return std::bit_cast<float>(sign | ((code << (23 - mantissa)) + (static_cast<uint32_t>(127 + least - 1) << 23)));
}

}  // namespace fp8_detail

inline f8e4m3 to_e4m3(float x) { return {fp8_detail::encode<3, -6>(x, kLargestE4M3)}; }
inline f8e5m2 to_e5m2(float x) { return {fp8_detail::encode<2, -14>(x, kLargestE5M2)}; }
inline float to_float(f8e4m3 x) { return fp8_detail::decode<3, -6>(x.bits); }
inline float to_float(f8e5m2 x) { return fp8_detail::decode<2, -14>(x.bits); }

}  // namespace hlat
