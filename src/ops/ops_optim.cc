// The front of casts, fills, reductions and AdamW.
#include <cmath>

#include "ops/contract.h"

namespace hlat {

namespace {

void check_map(const char* op, const ElementMap& m) {
  HLAT_CHECK(m.valid(), "{}: map first {}, run {}, stride {}, offset {}", op, m.first, m.run, m.stride, m.offset);
}

}  // namespace

void Ops::cast(Tensor dst, Tensor src, Rounding rounding, NoiseKey key, ElementMap map) {
  check_flat({"cast", "dst"}, dst);
  check_flat({"cast", "src"}, src);
  check_shape({"cast", "src"}, src, dst.shape);
  HLAT_CHECK(stat_type(dst.dtype) == stat_type(src.dtype), "cast: {} to {}: f64 stays f64", src.str(), dst.str());
  check_map("cast", map);
  const Timed timed = count(OpKind::cast, 0, bytes_of({dst, src}));
  do_cast(dst, src, rounding, key, map);
}

void Ops::fill(Tensor t, double value) {
  HLAT_CHECK(t.defined() && t.is_contiguous(), "fill: t {} has strides ({}, {})", t.str(), t.stride[0], t.stride[1]);
  const Timed timed = count(OpKind::fill, 0, bytes_of({t}));
  do_fill(t, value);
}

void Ops::fill_normal(Tensor t, double std, NoiseKey key, ElementMap map) {
  check_flat({"fill_normal", "t"}, t);
  HLAT_CHECK(std >= 0, "fill_normal: std {}", std);
  check_map("fill_normal", map);
  const Timed timed = count(OpKind::fill_normal, numel(t), bytes_of({t}));
  do_fill_normal(t, std, key, map);
}

void Ops::sum(Tensor out, Tensor x) {
  check({"sum", "out"}, out, {1}, DType::f64);
  HLAT_CHECK(x.rank() == 1, "sum: x {}", x.str());
  check_flat({"sum", "x"}, x);
  const Timed timed = count(OpKind::sum, numel(x), bytes_of({out, x}));
  const Scope scope(temp_);
  do_sum(out, x, scratch(reduce_scratch(x.numel()), OpKind::sum));
}

void Ops::sum_squares(Tensor out, Tensor x) { sum_squares(out, std::span<const Tensor>(&x, 1)); }

void Ops::sum_squares(Tensor out, std::span<const Tensor> x) {
  check({"sum_squares", "out"}, out, {static_cast<int64_t>(x.size())}, DType::f64);
  double elements = 0, bytes = bytes_of({out});
  size_t parts = 0;
  for (const Tensor& t : x) {
    check_flat({"sum_squares", "x"}, t);
    elements += numel(t);
    bytes += bytes_of({t});
    parts += reduce_scratch(t.numel());
  }
  const Timed timed = count(OpKind::sum_squares, 2 * elements, bytes);
  const Scope scope(temp_);
  do_sum_squares(out, x, scratch(parts, OpKind::sum_squares));
}

void Ops::clip_scale(Tensor scale, Tensor sq, double max_norm) {
  HLAT_CHECK(scale.shape == Shape({1}) && scale.dtype == stat_type(scale.dtype), "clip_scale: scale {}", scale.str());
  HLAT_CHECK(sq.rank() == 1 && sq.dtype == DType::f64 && sq.is_contiguous(), "clip_scale: sq {}", sq.str());
  HLAT_CHECK(max_norm >= 0, "clip_scale: max_norm {}", max_norm);
  const Timed timed = count(OpKind::clip_scale, numel(sq) + 3, bytes_of({scale, sq}));
  do_clip_scale(scale, sq, max_norm);
}

AdamwStep AdamwStep::of(double lr, int64_t number, float beta1, float beta2) {
  HLAT_CHECK(number >= 1, "adamw: step {}", number);
  const auto t = static_cast<double>(number);
  return {.lr = lr,
          .correction1 = 1.0 / (1.0 - std::pow(static_cast<double>(beta1), t)),
          .correction2_rsqrt = 1.0 / std::sqrt(1.0 - std::pow(static_cast<double>(beta2), t)),
          .number = t};
}

namespace {

// A weight in FP8 has a master, in f32 or in the type that it would have without FP8.
void check_fp8_weight(const AdamwTensors& t) {
  HLAT_CHECK(t.weight.dtype == DType::f8e4m3, "adamw: weights of FP8 are f8e4m3, this one is {}", t.weight.str());
  HLAT_CHECK(t.weight.is_contiguous() && t.master.defined() && (t.master.dtype == DType::f32 || t.master.dtype == DType::bf16),
             "adamw: weight {}, master {}", t.weight.str(), t.master.str());
  check_shape({"adamw", "master"}, t.master, t.weight.shape);
  check({"adamw", "fp8_scale"}, t.fp8_scale, {kFp8Scale}, DType::f32);
  check({"adamw", "fp8_seen"}, t.fp8_seen, {kFp8Seen}, DType::f64);
}

void check_wide_weight(const AdamwTensors& t) {
  check_flat({"adamw", "weight"}, t.weight);
  if (!t.master.defined()) return;
  check({"adamw", "master"}, t.master, t.weight.shape, stat_type(t.weight.dtype));
  HLAT_CHECK(t.weight.dtype != DType::f32, "adamw: weight {} is its own master", t.weight.str());
}

void check_adamw(const AdamwTensors& t, const AdamwScalars& s) {
  if (is_fp8(t.weight.dtype))
    check_fp8_weight(t);
  else
    check_wide_weight(t);
  const Shape& shape = t.weight.shape;
  check_flat({"adamw", "m"}, t.m);
  check_flat({"adamw", "grad"}, t.grad);
  check_shape({"adamw", "grad"}, t.grad, shape);
  check_shape({"adamw", "m"}, t.m, shape);
  check({"adamw", "v"}, t.v, shape, t.m.dtype);
  check({"adamw", "scale"}, t.scale, {1}, stat_type(t.weight.dtype));
  check({"adamw", "step"}, t.step, {kAdamwStep}, DType::f64);
  check({"adamw", "weight_sq"}, t.weight_sq, {1}, DType::f64);
  if (t.change.defined()) check({"adamw", "change"}, t.change, {kAdamwChange}, DType::f64);
  check_map("adamw", s.map);
  HLAT_CHECK(0 <= s.beta1 && s.beta1 < 1 && 0 <= s.beta2 && s.beta2 < 1 && s.eps >= 0, "adamw: beta1 {}, beta2 {}, eps {}", s.beta1,
             s.beta2, s.eps);
}

// What the items of one call have in common.
bool alike(const AdamwItem& a, const AdamwItem& b) {
  const AdamwTensors &x = a.tensors, &y = b.tensors;
  const AdamwScalars &s = a.scalars, &t = b.scalars;
  return x.weight.dtype == y.weight.dtype && x.master.defined() == y.master.defined() && x.master.dtype == y.master.dtype &&
         x.m.dtype == y.m.dtype && x.grad.dtype == y.grad.dtype && x.scale.data == y.scale.data && x.step.data == y.step.data &&
         x.change.defined() == y.change.defined() && s.beta1 == t.beta1 && s.beta2 == t.beta2 && s.eps == t.eps &&
         s.round_weights == t.round_weights && s.round_moments == t.round_moments && s.seed == t.seed;
}

}  // namespace

void Ops::adamw(std::span<const AdamwItem> items) {
  double elements = 0, bytes = 0;
  size_t parts = 0;
  for (const AdamwItem& item : items) {
    const AdamwTensors& t = item.tensors;
    check_adamw(t, item.scalars);
    HLAT_CHECK(alike(item, items.front()), "adamw: {} and {} differ in type, scale, step, constants or what is measured", t.weight.str(),
               items.front().tensors.weight.str());
    elements += numel(t.weight);
    // The weight is read only when it is its own master.
    bytes += bytes_of({t.weight, t.m, t.m, t.v, t.v, t.grad, t.scale, t.step, t.weight_sq}) +
             (t.master.defined() ? bytes_of({t.master, t.master}) : bytes_of({t.weight}));
    if (t.change.defined()) bytes += bytes_of({t.change});
    parts += reduce_scratch(t.weight.numel()) * static_cast<size_t>(t.change.defined() ? 1 + kAdamwChange : 1);
  }
  const Timed timed = count(OpKind::adamw, 18 * elements, bytes);
  const Scope scope(temp_);
  do_adamw(items, scratch(parts, OpKind::adamw));
}

void Ops::checksum(Tensor out, Tensor x) {
  check({"checksum", "out"}, out, {2}, DType::i32);
  HLAT_CHECK(x.defined() && x.is_contiguous(), "checksum: x {} has strides ({}, {})", x.str(), x.stride[0], x.stride[1]);
  const Timed timed = count(OpKind::checksum, 0, bytes_of({out, x}));
  const Scope scope(temp_);
  do_checksum(out, x, scratch(reduce_scratch(x.numel()), OpKind::checksum));
}

void Ops::largest(Tensor out, Tensor x, bool absolute) {
  check({"largest", "out"}, out, {1}, DType::f64);
  check_flat({"largest", "x"}, x);
  const Timed timed = count(OpKind::largest, numel(x), bytes_of({out, x}));
  if (x.numel() == 0) return;
  const Scope scope(temp_);
  do_largest(out, x, absolute, scratch(reduce_scratch(x.numel()), OpKind::largest));
}

}  // namespace hlat
