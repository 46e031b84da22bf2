#include "ops/conformance_fp8_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hlat {

std::vector<StoreCase> store_cases() {
  std::vector<StoreCase> cases;
  for (int bits = 0; bits < 16; ++bits) {
    const StoreCase c{.type = (bits & 1) != 0 ? DType::f8e5m2 : DType::f8e4m3,
                      .rows = (bits & 2) != 0,
                      .columns = (bits & 4) != 0,
                      .seen = (bits & 8) != 0};
    if (c.rows || c.columns) cases.push_back(c);
  }
  return cases;
}

Twin same_type(Lab& lab, DType dtype, const Shape& shape, const std::vector<double>& values) {
  const auto one = [&] { return lab.memory().from(dtype, shape, values); };
  return {one(), one(), one()};
}

Twin fp8_scale(Lab& lab, double scale) { return same_type(lab, DType::f32, {kFp8Scale}, {scale, 0, 0, 0, 1 / scale, 0, 0, 0}); }

StoreTwins make_store(Lab& lab, const StoreCase& c, int64_t rows, int64_t columns) {
  const auto codes = [&](const Shape& shape) {
    const Twin t{lab.memory().zeros(c.type, shape), lab.memory().zeros(c.type, shape), {}};
    std::memset(t.test.data, 0x5a, t.test.bytes());
    return t;
  };
  StoreTwins s;
  if (c.rows) s.rows = codes({rows, columns});
  if (c.columns) s.columns = codes({columns, rows});
  s.scale = fp8_scale(lab, c.scale);
  if (c.seen) s.seen = same_type(lab, DType::f64, {kFp8Seen}, {0.25, 3, 7});
  return s;
}

std::vector<double> all_kinds(int64_t count, double scale, bool not_finite, std::string_view name) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<double> special = {0.0, -0.0, 0x1p-133, -0x1p-133, 0x1.fep127, -0x1.fep127, infinity, -infinity, nan, -nan};
  const uint64_t kinds = not_finite ? special.size() : special.size() - 4;
  const NoiseKey key{.seed = 77, .stream = hash_name(name), .purpose = Noise::sample, .step = 0};
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const auto words = philox_block(key, static_cast<uint64_t>(i));
    if (words[0] % 16 == 0) {
      values.push_back(special[words[1] % kinds]);
      continue;
    }
    // Seven bits of mantissa, as bf16 has: every sixteenth is a tie of E4M3. A f32 value may lie just beside it.
    const double mantissa = 1 + (words[1] % 128) / 128.0 + (static_cast<int>(words[2] % 3) - 1) * 0x1p-22;
    values.push_back(std::ldexp((words[0] & 256) != 0 ? -mantissa : mantissa, static_cast<int>(words[3] % 41) - 20) / scale);
  }
  return values;
}

namespace {

bool is_nan_code(uint8_t code, DType type) { return (code & 0x7f) > (type == DType::f8e4m3 ? 0x7e : 0x7c); }

}  // namespace

void expect_bits(const char* what, const Tensor& test, const Tensor& expected, bool signs) {
  const size_t size = size_of(test.dtype);
  int64_t wrong = 0;
  for (int64_t i = 0; i < test.numel(); ++i) {
    const std::byte *a = test.as<std::byte>() + static_cast<size_t>(i) * size,
                    *b = expected.as<std::byte>() + static_cast<size_t>(i) * size;
    if (std::memcmp(a, b, size) == 0) continue;
    const bool both_nan = is_fp8(test.dtype) ? !signs && is_nan_code(static_cast<uint8_t>(*a), test.dtype) &&
                                                   is_nan_code(static_cast<uint8_t>(*b), test.dtype)
                                             : std::isnan(load_f64(test, i)) && std::isnan(load_f64(expected, i));
    if (!both_nan && ++wrong <= 3)
      ADD_FAILURE() << what << " " << test.str() << " element " << i << ": " << load_f64(test, i) << ", expected " << load_f64(expected, i);
  }
  if (wrong > 3) ADD_FAILURE() << what << ": " << wrong << " of " << test.numel() << " elements are wrong";
}

void expect_store(const StoreTwins& s, bool signs) {
  if (s.rows.test.defined()) expect_bits("rows", s.rows.test, s.rows.ref, signs);
  if (s.columns.test.defined()) expect_bits("columns", s.columns.test, s.columns.ref, signs);
  if (s.seen.test.defined()) expect_bits("seen", s.seen.test, s.seen.ref);
}

}  // namespace hlat
