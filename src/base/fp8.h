// 8-bit floating-point numbers as storage types. E4M3: 4 bits of exponent, 3 of mantissa, no infinity, up to 448. E5M2: 5 and 2, up to
// 57344. Rounding is to the nearest, ties to even, with saturation; what is not finite becomes NaN of its sign. Every value is a bf16 value
// too.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace hlat {

struct f8e4m3 {
  uint8_t bits = 0;
};
struct f8e5m2 {
  uint8_t bits = 0;
};

// Dimensions of FP8 products are multiples of this, in the whole model: others stay in the type of activations.
inline constexpr int64_t kFp8Grain = 16;
constexpr bool fp8_fits(int64_t outputs, int64_t inputs) { return outputs % kFp8Grain == 0 && inputs % kFp8Grain == 0; }

inline constexpr float kLargestE4M3 = 448.0f, kLargestE5M2 = 57344.0f;

namespace fp8_detail {

constexpr uint32_t kInfinity = 0x7f800000u;  // bits of f32; magnitudes are ordered as their bits are

constexpr uint32_t power_of_two(int exponent) { return static_cast<uint32_t>(127 + exponent) << 23; }

// mantissa: bits of it; least: exponent of the smallest normal number. Without branches, so that loops become vectors. The scale is a
// power of two: the product is exact, or so small that it becomes 0, or too large and saturates.
template <int mantissa, int least>
inline uint8_t encode(float x, float scale, float largest) {
  constexpr int drop = 23 - mantissa;
  const uint32_t u = std::bit_cast<uint32_t>(x), magnitude = u & 0x7fffffffu;
  const uint32_t v = std::min(std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * scale), std::bit_cast<uint32_t>(largest));
  // Below the smallest normal number: a multiple of 2^(least - mantissa). Adding 2^23 of them rounds.
  constexpr uint32_t unit = power_of_two(least - mantissa + 23);
  const uint32_t low = std::bit_cast<uint32_t>(std::bit_cast<float>(v) + std::bit_cast<float>(unit)) - unit;
  const uint32_t high = ((v + (1u << (drop - 1)) - 1u + (v >> drop & 1u)) >> drop) - (power_of_two(least - 1) >> drop);
  const uint32_t code = v < power_of_two(least) ? low : high;
  return static_cast<uint8_t>((u >> 24 & 0x80u) | (magnitude < kInfinity ? code : 0x7fu));
}

template <int mantissa, int least>
inline float decode(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24, code = bits & 0x7fu;
  if (mantissa == 3 ? code == 0x7fu : code > 0x7cu) return std::bit_cast<float>(sign | kInfinity | 0x400000u);
  if (mantissa == 2 && code == 0x7cu) return std::bit_cast<float>(sign | kInfinity);
  const float a = code >> mantissa == 0 ? static_cast<float>(code) * std::bit_cast<float>(power_of_two(least - mantissa))
                                        : std::bit_cast<float>((code << (23 - mantissa)) + power_of_two(least - 1));
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(a));
}

}  // namespace fp8_detail

// x * scale, rounded. What x becomes where it is not finite does not depend on the scale, which is a power of two.
inline f8e4m3 to_e4m3(float x, float scale = 1) { return {fp8_detail::encode<3, -6>(x, scale, kLargestE4M3)}; }
inline f8e5m2 to_e5m2(float x, float scale = 1) { return {fp8_detail::encode<2, -14>(x, scale, kLargestE5M2)}; }
inline float to_float(f8e4m3 x) { return fp8_detail::decode<3, -6>(x.bits); }
inline float to_float(f8e5m2 x) { return fp8_detail::decode<2, -14>(x.bits); }

}  // namespace hlat
