// FP8 of the reference backend, written independently of base/fp8.h: a code is found among the values of all codes, in f64, where a value
// times its scale is exact. Tensors have the types that the contract of the ops names; sums of products are f64.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/ref_ops.h"
#include "support/host_memory.h"

namespace hlat {
namespace {

// The values of the codes 0, 1, ... up to the largest finite one.
std::vector<double> finite_values(DType type) {
  const int mantissa = type == DType::f8e4m3 ? 3 : 2, bias = type == DType::f8e4m3 ? 7 : 15, top = type == DType::f8e4m3 ? 0x7e : 0x7b;
  std::vector<double> values;
  for (int code = 0; code <= top; ++code) {
    const int exponent = code >> mantissa, fraction = code & ((1 << mantissa) - 1);
    values.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                                   : std::ldexp((1 << mantissa) + fraction, exponent - bias - mantissa));
  }
  return values;
}

const std::vector<double>& values_of(DType type) {
  static const std::vector<double> e4m3 = finite_values(DType::f8e4m3), e5m2 = finite_values(DType::f8e5m2);
  return type == DType::f8e4m3 ? e4m3 : e5m2;
}

// Of two codes that are equally near the even one.
size_t nearest_code(DType type, double magnitude) {
  const std::vector<double>& values = values_of(type);
  const size_t above = static_cast<size_t>(std::lower_bound(values.begin(), values.end(), magnitude) - values.begin());
  if (above == values.size()) return above - 1;
  if (above == 0) return 0;
  const double up = values[above] - magnitude, down = magnitude - values[above - 1];
  return up < down || (up == down && above % 2 == 0) ? above : above - 1;
}

double stored_value(DType type, uint8_t code) {
  const size_t magnitude = code & 0x7f;
  const double sign = (code & 0x80) != 0 ? -1 : 1;
  if (magnitude < values_of(type).size()) return sign * values_of(type)[magnitude];
  return type == DType::f8e5m2 && magnitude == 0x7c ? sign * INFINITY : std::copysign(NAN, sign);
}

void see(Fp8Seen& seen, DType type, double x, double scaled, size_t code) {
  if (std::isnan(x) || std::abs(x) > seen.largest) seen.largest = std::abs(x);
  seen.saturated += std::isfinite(x) && std::abs(scaled) > values_of(type).back() ? 1 : 0;
  seen.lost += x != 0 && code == 0 ? 1 : 0;
}

uint8_t stored(DType type, double x, const Tensor& scale, const Tensor& seen) {
  const double scaled = x * static_cast<double>(scale.as<float>()[0]);
  const size_t code = std::isfinite(x) ? nearest_code(type, std::abs(scaled)) : 0x7f;
  if (seen.defined()) see(*seen.as<Fp8Seen>(), type, x, scaled, code);
  return static_cast<uint8_t>(code | (std::signbit(x) ? 0x80 : 0));
}

std::vector<double> values_of(const Fp8Operand& x) {
  std::vector<double> values;
  for (int64_t i = 0; i < x.values.numel(); ++i)
    values.push_back(stored_value(x.values.dtype, x.values.as<uint8_t>()[i]) * static_cast<double>(x.scale.as<float>()[kFp8Inverse]));
  return values;
}

}  // namespace

void RefOps::do_quantize(const Fp8Store& out, Tensor x) {
  const int64_t rows = x.dim(0), columns = x.dim(1);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const uint8_t code = stored(out.dtype(), load_f64(x, r * columns + c), out.scale, out.seen);
      if (out.rows.defined()) out.rows.as<uint8_t>()[r * columns + c] = code;
      if (out.columns.defined()) out.columns.as<uint8_t>()[c * rows + r] = code;
    }
}

void RefOps::do_quantize_flat(Tensor dst, Tensor src, Tensor scale, Tensor seen) {
  for (int64_t i = 0; i < src.numel(); ++i) dst.as<uint8_t>()[i] = stored(dst.dtype, load_f64(src, i), scale, seen);
}

void RefOps::do_transpose(Tensor y, Tensor x) {
  for (int64_t r = 0; r < x.dim(0); ++r)
    for (int64_t c = 0; c < x.dim(1); ++c) y.as<uint8_t>()[c * x.dim(0) + r] = x.as<uint8_t>()[r * x.dim(1) + c];
}

void RefOps::do_dequantize(Tensor y, Tensor x, Tensor scale) {
  for (int64_t i = 0; i < x.numel(); ++i)
    store_f64(y, i, stored_value(x.dtype, x.as<uint8_t>()[i]) * static_cast<double>(scale.as<float>()[kFp8Inverse]));
}

void RefOps::do_matmul_fp8(Tensor c, const Fp8Operand& a, const Fp8Operand& b, Tensor residual, const MatmulShape& s, bool /*fast_sums*/,
                           Tensor /*scratch*/) {
  const std::vector<double> x = values_of(a), w = values_of(b);
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = s.accumulate ? load_f64(c, i * s.n + j) : residual.defined() ? load_f64(residual, i * s.n + j) : 0;
      for (int64_t k = 0; k < s.k; ++k) sum += x[static_cast<size_t>(i * s.k + k)] * w[static_cast<size_t>(j * s.k + k)];
      store_f64(c, i * s.n + j, sum);
    }
}

void RefOps::do_fp8_scales(Tensor scale, Tensor history, Tensor seen, Tensor limit, Tensor step, Tensor clip, Tensor reset) {
  if (clip.defined() && std::isnan(load_f64(clip, 0))) return;
  for (int64_t u = 0; u < limit.dim(0); ++u) {
    double now = 0;
    for (int64_t p = 0; p < seen.dim(0); ++p) {
      const double largest = seen.as<double>()[(p * limit.dim(0) + u) * kFp8Seen];
      now = std::isnan(largest) || std::isnan(now) ? NAN : std::max(now, largest);
    }
    if (!std::isfinite(now)) continue;
    store_f64(history, u * kFp8History + (static_cast<int64_t>(step.as<AdamwStep>()->number) - 1) % kFp8History, now);
    double most = 0;
    for (int64_t i = 0; i < kFp8History; ++i) most = std::max(most, load_f64(history, u * kFp8History + i));
    if (most == 0) continue;
    int exponent = 60;
    while (exponent > -60 && std::ldexp(most, exponent) > load_f64(limit, u)) --exponent;
    store_f64(scale, u * kFp8Scale, std::ldexp(1, exponent));
    store_f64(scale, u * kFp8Scale + kFp8Inverse, std::ldexp(1, -exponent));
  }
  for (int64_t i = 0; reset.defined() && i < reset.numel(); ++i) store_f64(reset, i, 0);
}

}  // namespace hlat
