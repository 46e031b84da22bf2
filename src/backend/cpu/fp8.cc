// FP8 on any CPU: stores and transposes in squares that stay in the first-level cache; a product is that of the values as bf16, which
// holds them exactly. The loops are plain and without branches, so that the compiler makes vectors of them (this file is built with -O3).
#include "backend/cpu/fp8.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "backend/cpu/cpu_ops.h"
#include "base/bf16.h"
#include "base/fp8.h"

namespace hlat {

namespace {

constexpr int64_t kSquare = 64, kRunFp8 = 4096;

struct StoreE4M3 {
  static constexpr float kLargest = kLargestE4M3;
  static uint8_t code(float x, float scale) { return to_e4m3(x, scale).bits; }
};
struct StoreE5M2 {
  static constexpr float kLargest = kLargestE5M2;
  static uint8_t code(float x, float scale) { return to_e5m2(x, scale).bits; }
};

float wide_value(float x) { return x; }
float wide_value(bf16 x) { return to_float(x); }

// At most kRunFp8 elements. Something that saturates is finite, and so is something that becomes 0.
template <class Store, class Source>
void store_run(uint8_t* __restrict to, const Source* __restrict from, int64_t count, float scale, Fp8Met& met) {
  uint32_t largest = 0, saturated = 0, lost = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float x = wide_value(from[i]);
    const uint8_t code = Store::code(x, scale);
    const uint32_t magnitude = std::bit_cast<uint32_t>(x) & 0x7fffffffu;
    const uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * scale);
    largest = std::max(largest, magnitude);
    saturated += static_cast<uint32_t>(scaled > std::bit_cast<uint32_t>(Store::kLargest)) & static_cast<uint32_t>(magnitude < 0x7f800000u);
    lost += static_cast<uint32_t>((code & 0x7fu) == 0) & static_cast<uint32_t>(magnitude != 0);
    to[i] = code;
  }
  met.largest = std::max(met.largest, largest);
  met.saturated += saturated;
  met.lost += lost;
}

template <class Store>
void store_source(uint8_t* to, const Tensor& src, int64_t begin, int64_t count, float scale, Fp8Met& met) {
  for (int64_t i = 0; i < count; i += kRunFp8) {
    const int64_t n = std::min(kRunFp8, count - i);
    if (src.dtype == DType::bf16)
      store_run<Store>(to + i, src.as<bf16>() + begin + i, n, scale, met);
    else
      store_run<Store>(to + i, src.as<float>() + begin + i, n, scale, met);
  }
}

// The squares of rows [begin, end) of a matrix of `width` columns: body(row, rows, column, columns).
template <class Body>
void for_squares(int64_t begin, int64_t end, int64_t width, const Body& body) {
  for (int64_t r = begin; r < end; r += kSquare)
    for (int64_t c = 0; c < width; c += kSquare) body(r, std::min(kSquare, end - r), c, std::min(kSquare, width - c));
}

// A square whose row r begins at from + r * row, into a matrix whose row is a column of it.
void put_columns(uint8_t* __restrict to, int64_t to_row, const uint8_t* __restrict from, int64_t row, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) to[c * to_row + r] = from[r * row + c];
}

size_t bf16_bytes(int64_t elements) { return (static_cast<size_t>(elements) * sizeof(bf16) + 63) / 64 * 64; }

MatmulShape of_bf16(MatmulShape s) {
  s.a = s.b = DType::bf16;
  return s;
}

// The largest power of two that keeps m within limit; both are above 0.
int scale_exponent(double m, double limit) {
  int m_exponent = 0, limit_exponent = 0;
  const double m_part = std::frexp(m, &m_exponent), limit_part = std::frexp(limit, &limit_exponent);
  return std::clamp(limit_exponent - m_exponent - (m_part > limit_part ? 1 : 0), -kFp8Exponent, kFp8Exponent);
}

}  // namespace

void add_met(Fp8Seen& seen, const Fp8Met& met) {
  const bool nan = met.largest > 0x7f800000u;
  const double largest = nan ? std::numeric_limits<double>::quiet_NaN() : std::bit_cast<float>(met.largest);
  if (nan || largest > seen.largest) seen.largest = largest;  // NaN stays: nothing is above it
  seen.saturated += static_cast<double>(met.saturated);
  seen.lost += static_cast<double>(met.lost);
}

void store_fp8(uint8_t* to, DType type, const Tensor& src, int64_t begin, int64_t count, float scale, Fp8Met& met) {
  if (type == DType::f8e4m3)
    store_source<StoreE4M3>(to, src, begin, count, scale, met);
  else
    store_source<StoreE5M2>(to, src, begin, count, scale, met);
}

size_t CpuOps::fp8_scratch(int64_t elements) const { return static_cast<size_t>(elements) * sizeof(bf16); }

void CpuOps::do_quantize(const Fp8Store& out, Tensor x) {
  const int64_t n = x.dim(0), width = x.dim(1);
  const float scale = out.scale.as<float>()[0];
  std::mutex mutex;
  threads_.ranges(n, row_grain(width), [&](int64_t begin, int64_t end) {
    Fp8Met met;
    alignas(64) std::array<uint8_t, kSquare * kSquare> square;
    for_squares(begin, end, width, [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
      for (int64_t r = 0; r < rows; ++r) {
        uint8_t* codes = square.data() + r * kSquare;
        const int64_t first = (row + r) * width + column;
        store_fp8(codes, out.dtype(), x, first, columns, scale, met);
        if (out.rows.defined()) std::memcpy(out.rows.as<uint8_t>() + first, codes, static_cast<size_t>(columns));
      }
      if (out.columns.defined()) put_columns(out.columns.as<uint8_t>() + column * n + row, n, square.data(), kSquare, rows, columns);
    });
    const std::lock_guard lock(mutex);
    if (out.seen.defined()) add_met(*out.seen.as<Fp8Seen>(), met);
  });
}

void CpuOps::do_quantize_flat(Tensor dst, Tensor src, Tensor scale, Tensor seen) {
  std::mutex mutex;
  threads_.ranges(src.numel(), kGrain, [&](int64_t begin, int64_t end) {
    Fp8Met met;
    store_fp8(dst.as<uint8_t>() + begin, dst.dtype, src, begin, end - begin, scale.as<float>()[0], met);
    const std::lock_guard lock(mutex);
    if (seen.defined()) add_met(*seen.as<Fp8Seen>(), met);
  });
}

void CpuOps::do_transpose(Tensor y, Tensor x) {
  const int64_t n = x.dim(0), width = x.dim(1);
  threads_.ranges(n, row_grain(width), [&](int64_t begin, int64_t end) {
    for_squares(begin, end, width, [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
      put_columns(y.as<uint8_t>() + column * n + row, n, x.as<uint8_t>() + row * width + column, width, rows, columns);
    });
  });
}

void CpuOps::do_dequantize(Tensor y, Tensor x, Tensor scale) {
  const float inverse = scale.as<float>()[kFp8Inverse];
  std::array<bf16, 256> value;
  for (size_t i = 0; i < value.size(); ++i) {
    const auto bits = static_cast<uint8_t>(i);
    value[i] = to_bf16((x.dtype == DType::f8e4m3 ? to_float(f8e4m3{bits}) : to_float(f8e5m2{bits})) * inverse);
  }
  threads_.ranges(x.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y.as<bf16>()[i] = value[x.as<uint8_t>()[i]];
  });
}

size_t CpuOps::matmul_fp8_scratch(const MatmulShape& s) const {
  return bf16_bytes(s.m * s.k) + bf16_bytes(s.n * s.k) + matmul_->scratch(of_bf16(s));
}

void CpuOps::do_matmul_fp8(Tensor c, const Fp8Operand& a, const Fp8Operand& b, Tensor residual, const MatmulShape& s, bool /*fast_sums*/,
                           Tensor scratch) {
  const MatmulShape wide = of_bf16(s);
  auto* place = scratch.as<std::byte>();
  const Tensor wide_a = Tensor::contiguous(place, DType::bf16, a.values.shape);
  place += bf16_bytes(s.m * s.k);
  const Tensor wide_b = Tensor::contiguous(place, DType::bf16, b.values.shape);
  place += bf16_bytes(s.n * s.k);
  do_dequantize(wide_a, a.values, a.scale);
  do_dequantize(wide_b, b.values, b.scale);
  const auto words = static_cast<int64_t>((matmul_->scratch(wide) + 3) / 4);
  const Tensor rest = words > 0 ? Tensor::contiguous(place, DType::f32, {words}) : Tensor{};
  if (residual.defined())
    do_matmul_add(c, wide_a, wide_b, residual, wide, rest);
  else
    do_matmul(c, wide_a, wide_b, wide, rest);
}

void CpuOps::do_fp8_scales(Tensor scale, Tensor history, Tensor seen, Tensor limit, Tensor step, Tensor clip, Tensor reset) {
  if (clip.defined() && std::isnan(*clip.as<const float>())) return;
  const auto number = static_cast<int64_t>(step.as<const AdamwStep>()->number);
  HLAT_CHECK(number >= 1, "fp8_scales: step {}", number);
  const int64_t units = limit.dim(0);
  for (int64_t u = 0; u < units; ++u) {
    double now = 0;
    for (int64_t p = 0; p < seen.dim(0); ++p) {
      const double largest = seen.as<Fp8Seen>()[p * units + u].largest;
      if (std::isnan(largest) || largest > now) now = largest;
    }
    if (!std::isfinite(now)) continue;
    float* past = history.as<float>() + u * kFp8History;
    past[(number - 1) % kFp8History] = static_cast<float>(now);
    const float most = *std::max_element(past, past + kFp8History);
    if (!(most > 0) || !std::isfinite(most)) continue;
    const int exponent = scale_exponent(static_cast<double>(most), static_cast<double>(limit.as<float>()[u]));
    scale.as<float>()[u * kFp8Scale] = std::ldexp(1.0f, exponent);
    scale.as<float>()[u * kFp8Scale + kFp8Inverse] = std::ldexp(1.0f, -exponent);
  }
  if (reset.defined()) std::fill_n(reset.as<double>(), reset.numel(), 0.0);  // it may lie in seen
}

}  // namespace hlat
