// FP8 against its definition: the values of all codes, and of every f32 that matters the nearest of them.
#include "base/fp8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "base/bf16.h"

namespace hlat {
namespace {

struct Type {
  const char* name;
  int mantissa, bias, top;  // top: the code of the largest finite value
  double largest;
  std::function<uint8_t(float, float)> encode;
  std::function<float(uint8_t)> decode;
};

const std::vector<Type>& fp8_types() {
  static const std::vector<Type> types = {
      {"e4m3", 3, 7, 0x7e, 448, [](float x, float s) { return to_e4m3(x, s).bits; }, [](uint8_t c) { return to_float(f8e4m3{c}); }},
      {"e5m2", 2, 15, 0x7b, 57344, [](float x, float s) { return to_e5m2(x, s).bits; }, [](uint8_t c) { return to_float(f8e5m2{c}); }}};
  return types;
}

double defined_value(const Type& t, int code) {
  const int exponent = code >> t.mantissa, fraction = code & ((1 << t.mantissa) - 1);
  if (exponent == 0) return std::ldexp(fraction, 1 - t.bias - t.mantissa);
  return std::ldexp((1 << t.mantissa) + fraction, exponent - t.bias - t.mantissa);
}

// Of all codes the nearest, of two the even one; beyond the largest the largest.
uint8_t searched(const Type& t, float x, double scale) {
  const uint8_t sign = std::signbit(x) ? 0x80 : 0;
  if (!std::isfinite(x)) return sign | 0x7f;
  const double a = std::min(std::abs(static_cast<double>(x)) * scale, t.largest);
  int best = 0;
  for (int code = 1; code <= t.top; ++code) {
    const double here = std::abs(defined_value(t, code) - a), there = std::abs(defined_value(t, best) - a);
    if (here < there || (here == there && code % 2 == 0)) best = code;
  }
  return static_cast<uint8_t>(sign | best);
}

TEST(Fp8, EveryCodeHasItsValueAndComesBack) {
  for (const Type& t : fp8_types()) {
    EXPECT_EQ(defined_value(t, t.top), t.largest);
    for (int code = 0; code <= t.top; ++code) {
      EXPECT_EQ(t.decode(static_cast<uint8_t>(code)), defined_value(t, code)) << t.name << " " << code;
      EXPECT_EQ(t.decode(static_cast<uint8_t>(code | 0x80)), -defined_value(t, code)) << t.name << " " << code;
    }
    EXPECT_TRUE(std::signbit(t.decode(0x80)));
    for (int code = t.top + 1; code < 0x80; ++code) {
      const float x = t.decode(static_cast<uint8_t>(code));
      EXPECT_EQ(std::isinf(x), t.mantissa == 2 && code == 0x7c) << t.name << " " << code;
      EXPECT_FALSE(std::isfinite(x)) << t.name << " " << code;
      EXPECT_TRUE(std::signbit(t.decode(static_cast<uint8_t>(code | 0x80))));
    }
    for (int code = 0; code < 256; ++code) {
      const float x = t.decode(static_cast<uint8_t>(code));
      EXPECT_EQ(t.encode(x, 1), std::isfinite(x) ? code : (code & 0x80) | 0x7f) << t.name << " " << code;
      EXPECT_EQ(std::bit_cast<uint32_t>(to_float(to_bf16(x))), std::bit_cast<uint32_t>(x)) << t.name << " " << code;
    }
  }
}

TEST(Fp8, EveryBf16BecomesTheNearest) {
  for (const Type& t : fp8_types())
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const float x = to_float(bf16{static_cast<uint16_t>(bits)});
      ASSERT_EQ(t.encode(x, 1), searched(t, x, 1)) << t.name << " of " << x;
    }
}

// Between neighbours: the middle goes to the even one, what lies one f32 beside it to its side. The same with every scale.
TEST(Fp8, TiesAreExact) {
  for (const Type& t : fp8_types())
    for (const int exponent : {0, 1, -1, 17, -33, 60, -60}) {
      const float scale = std::ldexp(1.0f, exponent);
      for (int code = 0; code < t.top; ++code) {
        const auto middle = static_cast<float>(std::ldexp((defined_value(t, code) + defined_value(t, code + 1)) / 2, -exponent));
        for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)}) {
          EXPECT_EQ(t.encode(x, scale), searched(t, x, static_cast<double>(scale))) << t.name << " of " << x << " * " << scale;
          EXPECT_EQ(t.encode(-x, scale), searched(t, -x, static_cast<double>(scale))) << t.name << " of " << -x << " * " << scale;
        }
        EXPECT_EQ(t.encode(middle, scale), code % 2 == 0 ? code : code + 1);
      }
    }
}

TEST(Fp8, WhatIsTooLargeSaturatesAndWhatIsNotFiniteIsNan) {
  const float huge = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const Type& t : fp8_types()) {
    const auto largest = static_cast<float>(t.largest);
    const std::vector<float> beyond = {largest, std::nextafter(largest, INFINITY), largest * 1.0625f, largest * 1.25f, 2 * largest, huge};
    for (const float x : beyond) {
      EXPECT_EQ(t.encode(x, 1), t.top) << t.name << " of " << x;
      EXPECT_EQ(t.encode(-x, 1), t.top | 0x80) << t.name << " of " << -x;
      EXPECT_EQ(t.encode(x, 0x1p60f), t.top) << t.name << " of " << x << " that overflows f32";
    }
    for (const float scale : {1.0f, 0x1p60f, 0x1p-60f}) {
      EXPECT_EQ(t.encode(infinity, scale), 0x7f);
      EXPECT_EQ(t.encode(-infinity, scale), 0xff);
      EXPECT_EQ(t.encode(std::copysign(nan, 1.0f), scale), 0x7f);
      EXPECT_EQ(t.encode(std::copysign(nan, -1.0f), scale), 0xff);
      EXPECT_EQ(t.encode(std::bit_cast<float>(0x7f800001u), scale), 0x7f) << "a signalling NaN";
      EXPECT_EQ(t.encode(0.0f, scale), 0);
      EXPECT_EQ(t.encode(-0.0f, scale), 0x80);
    }
    for (const float tiny : {std::numeric_limits<float>::denorm_min(), 0x1p-126f, 0x1p-60f}) {
      EXPECT_EQ(t.encode(tiny, 1), 0);
      EXPECT_EQ(t.encode(-tiny, 0x1p-60f), 0x80);
    }
  }
}

// Samples of f32: a step that meets every exponent with many mantissas.
TEST(Fp8, AnyF32BecomesTheNearest) {
  for (const Type& t : fp8_types())
    for (uint32_t bits = 0; bits < 0x80000000u; bits += 26417) {
      const float x = std::bit_cast<float>(bits);
      ASSERT_EQ(t.encode(x, 0x1p3f), searched(t, x, 8)) << t.name << " of " << x;
    }
}

}  // namespace
}  // namespace hlat
