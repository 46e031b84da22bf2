// The front of the ops that store or multiply FP8 (ops/fp8.h).
#include "ops/contract.h"

namespace hlat {

namespace {

void check_scale(const char* op, const Tensor& scale) { check({op, "scale"}, scale, {kFp8Scale}, DType::f32); }

void check_seen(const char* op, const Tensor& seen) {
  if (seen.defined()) check({op, "seen"}, seen, {kFp8Seen}, DType::f64);
}

void check_store(const char* op, const Fp8Store& out, const Shape& shape) {
  HLAT_CHECK(out.rows.defined() || out.columns.defined(), "{}: nothing to store", op);
  HLAT_CHECK(is_fp8(out.dtype()), "{}: out is {}, expected FP8", op, name_of(out.dtype()));
  if (out.rows.defined()) check({op, "rows"}, out.rows, shape, out.dtype());
  if (out.columns.defined()) check({op, "columns"}, out.columns, {shape[1], shape[0]}, out.dtype());
  check_scale(op, out.scale);
  check_seen(op, out.seen);
}

// A result in bf16 that may be undefined.
void check_wide(Arg arg, const Tensor& y, const Shape& shape) {
  if (y.defined()) check(arg, y, shape, DType::bf16);
}

void check_bf16(Arg arg, const Tensor& x) {
  check_matrix(arg, x);
  check_type(arg, x, DType::bf16);
}

double bytes_of(const Fp8Store& out) {
  return (out.rows.defined() ? hlat::bytes_of({out.rows}) : 0) + (out.columns.defined() ? hlat::bytes_of({out.columns}) : 0);
}
double bytes_if(const Tensor& y) { return y.defined() ? hlat::bytes_of({y}) : 0; }

void check_operand(const char* name, const Fp8Operand& x) {
  HLAT_CHECK(x.values.rank() == 2 && is_fp8(x.values.dtype) && x.values.is_contiguous(), "matmul_fp8: {} is {}, expected a matrix of FP8",
             name, x.values.str());
  check_scale("matmul_fp8", x.scale);
}

}  // namespace

// The place of a bf16 result: y, or scratch where the backend needs it.
Tensor Ops::fp8_room(Tensor y, const Shape& shape) {
  if (y.defined()) return y;
  const Tensor room = scratch(fp8_scratch(shape.numel()), OpKind::quantize);
  return room.defined() ? Tensor::contiguous(room.data, DType::bf16, shape) : Tensor{};
}

void Ops::quantize(const Fp8Store& out, Tensor x) {
  check_bf16({"quantize", "x"}, x);
  check_store("quantize", out, x.shape);
  const Timed timed = count(OpKind::quantize, numel(x), hlat::bytes_of({x}) + bytes_of(out));
  if (x.numel() > 0) do_quantize(out, x);
}

void Ops::rmsnorm_fp8(const Fp8Store& out, Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) {
  check_bf16({"rmsnorm_fp8", "x"}, x);
  check_store("rmsnorm_fp8", out, x.shape);
  check_wide({"rmsnorm_fp8", "y"}, y, x.shape);
  check({"rmsnorm_fp8", "rstd"}, rstd, {x.dim(0)}, DType::f32);
  check({"rmsnorm_fp8", "w"}, w, {x.dim(1)}, x.dtype);
  HLAT_CHECK(eps >= 0, "rmsnorm_fp8: eps {}", eps);
  const Timed timed = count(OpKind::rmsnorm, 5 * numel(x), hlat::bytes_of({rstd, x, w}) + bytes_if(y) + bytes_of(out));
  const Scope scope(temp_);
  if (x.numel() > 0) do_rmsnorm_fp8(out, fp8_room(y, x.shape), rstd, x, w, eps);
}

void Ops::add_rmsnorm_fp8(const Fp8Store& out, Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps) {
  check_bf16({"add_rmsnorm_fp8", "x"}, x);
  check_store("add_rmsnorm_fp8", out, x.shape);
  check({"add_rmsnorm_fp8", "sum"}, sum, x.shape, x.dtype);
  check({"add_rmsnorm_fp8", "delta"}, delta, x.shape, x.dtype);
  check_wide({"add_rmsnorm_fp8", "y"}, y, x.shape);
  check({"add_rmsnorm_fp8", "rstd"}, rstd, {x.dim(0)}, DType::f32);
  check({"add_rmsnorm_fp8", "w"}, w, {x.dim(1)}, x.dtype);
  HLAT_CHECK(!same_data(sum, y) && eps >= 0, "add_rmsnorm_fp8: sum {} is y, or eps {}", sum.str(), eps);
  const Timed timed = count(OpKind::add_rmsnorm, 6 * numel(x), hlat::bytes_of({sum, rstd, x, delta, w}) + bytes_if(y) + bytes_of(out));
  const Scope scope(temp_);
  if (x.numel() > 0) do_add_rmsnorm_fp8(out, sum, fp8_room(y, x.shape), rstd, x, delta, w, eps);
}

void Ops::swiglu_fp8(const Fp8Store& out, Tensor y, Tensor gu) {
  check_bf16({"swiglu_fp8", "gu"}, gu);
  HLAT_CHECK(gu.dim(1) % 2 == 0, "swiglu_fp8: gu {}", gu.str());
  const Shape shape = {gu.dim(0), gu.dim(1) / 2};
  check_store("swiglu_fp8", out, shape);
  check_wide({"swiglu_fp8", "y"}, y, shape);
  const Timed timed = count(OpKind::swiglu, 3 * numel(gu), hlat::bytes_of({gu}) + bytes_if(y) + bytes_of(out));
  const Scope scope(temp_);
  if (gu.numel() > 0) do_swiglu_fp8(out, fp8_room(y, shape), gu);
}

void Ops::swiglu_bwd_fp8(const Fp8Store& out, Tensor dgu, Tensor dy, Tensor gu) {
  check_bf16({"swiglu_bwd_fp8", "dy"}, dy);
  check({"swiglu_bwd_fp8", "gu"}, gu, {dy.dim(0), 2 * dy.dim(1)}, dy.dtype);
  check_store("swiglu_bwd_fp8", out, gu.shape);
  check_wide({"swiglu_bwd_fp8", "dgu"}, dgu, gu.shape);
  const Timed timed = count(OpKind::swiglu_bwd, 12 * numel(dy), hlat::bytes_of({dy, gu}) + bytes_if(dgu) + bytes_of(out));
  const Scope scope(temp_);
  if (gu.numel() > 0) do_swiglu_bwd_fp8(out, fp8_room(dgu, gu.shape), dy, gu);
}

void Ops::do_rmsnorm_fp8(const Fp8Store& out, Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) {
  do_rmsnorm(y, rstd, x, w, eps);
  do_quantize(out, y);
}

void Ops::do_add_rmsnorm_fp8(const Fp8Store& out, Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps) {
  do_add_rmsnorm(sum, y, rstd, x, delta, w, eps);
  do_quantize(out, y);
}

void Ops::do_swiglu_fp8(const Fp8Store& out, Tensor y, Tensor gu) {
  do_swiglu(y, gu);
  do_quantize(out, y);
}

void Ops::do_swiglu_bwd_fp8(const Fp8Store& out, Tensor dgu, Tensor dy, Tensor gu) {
  do_swiglu_bwd(dgu, dy, gu);
  do_quantize(out, dgu);
}

void Ops::quantize_flat(Tensor dst, Tensor src, Tensor scale, Tensor seen) {
  check_flat({"quantize_flat", "src"}, src);
  check_shape({"quantize_flat", "dst"}, dst, src.shape);
  HLAT_CHECK(is_fp8(dst.dtype) && src.dtype != DType::f64, "quantize_flat: {} to {}", src.str(), dst.str());
  check_scale("quantize_flat", scale);
  check_seen("quantize_flat", seen);
  const Timed timed = count(OpKind::quantize, numel(src), hlat::bytes_of({dst, src}));
  if (src.numel() > 0) do_quantize_flat(dst, src, scale, seen);
}

void Ops::transpose(Tensor y, Tensor x) {
  HLAT_CHECK(x.rank() == 2 && is_fp8(x.dtype) && x.is_contiguous(), "transpose: x is {}, expected a matrix of FP8", x.str());
  check({"transpose", "y"}, y, {x.dim(1), x.dim(0)}, x.dtype);
  HLAT_CHECK(!same_data(x, y), "transpose: y {} is x", y.str());
  const Timed timed = count(OpKind::quantize, 0, hlat::bytes_of({y, x}));
  if (x.numel() > 0) do_transpose(y, x);
}

void Ops::dequantize(Tensor y, Tensor x, Tensor scale) {
  check_bf16({"dequantize", "y"}, y);
  check_shape({"dequantize", "x"}, x, y.shape);
  HLAT_CHECK(is_fp8(x.dtype), "dequantize: x {}", x.str());
  check_scale("dequantize", scale);
  const Timed timed = count(OpKind::quantize, numel(x), hlat::bytes_of({y, x}));
  if (x.numel() > 0) do_dequantize(y, x, scale);
}

void Ops::matmul_fp8(Tensor c, Fp8Operand a, Fp8Operand b, Tensor residual, Fp8MatmulArgs args) {
  check_operand("a", a);
  check_operand("b", b);
  const MatmulShape s{.m = a.values.dim(0),
                      .n = b.values.dim(0),
                      .k = a.values.dim(1),
                      .trans_b = true,
                      .accumulate = args.accumulate,
                      .a = a.values.dtype,
                      .b = b.values.dtype,
                      .c = c.dtype};
  check_shape({"matmul_fp8", "c"}, c, {s.m, s.n});
  HLAT_CHECK(b.values.dim(1) == s.k && (c.dtype == DType::bf16 || c.dtype == DType::f32), "matmul_fp8: c {}, a {}, b {}^T", c.str(),
             a.values.str(), b.values.str());
  HLAT_CHECK(s.m % kFp8Grain == 0 && s.n % kFp8Grain == 0 && s.k % kFp8Grain == 0, "matmul_fp8: {} x {} x {} are no multiples of {}", s.m,
             s.n, s.k, kFp8Grain);
  if (residual.defined()) {
    check({"matmul_fp8", "residual"}, residual, c.shape, c.dtype);
    HLAT_CHECK(!args.accumulate && !same_data(c, residual), "matmul_fp8: c {} holds the residual", c.str());
  }
  const double bytes = hlat::bytes_of({a.values, b.values, c}) + (args.accumulate ? hlat::bytes_of({c}) : 0) + bytes_if(residual);
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const Timed timed = count(OpKind::matmul, flops, bytes, &s, args.fast_sums);
  if (s.m == 0 || s.n == 0 || s.k == 0) {
    HLAT_CHECK(!residual.defined() || s.m == 0 || s.n == 0, "matmul_fp8: no terms beside a residual");
    return empty_product(c, args.accumulate);
  }
  const Scope scope(temp_);
  do_matmul_fp8(c, a, b, residual, s, args.fast_sums, scratch(matmul_fp8_scratch(s), OpKind::matmul));
}

void Ops::fp8_scales(Tensor scale, Tensor history, Tensor seen, Tensor limit, Tensor step, Tensor clip, Tensor reset) {
  HLAT_CHECK(limit.rank() == 1 && seen.rank() == 3, "fp8_scales: limit {}, seen {}", limit.str(), seen.str());
  const int64_t units = limit.dim(0);
  check({"fp8_scales", "limit"}, limit, {units}, DType::f32);
  check({"fp8_scales", "scale"}, scale, {units, kFp8Scale}, DType::f32);
  check({"fp8_scales", "history"}, history, {units, kFp8History}, DType::f32);
  check({"fp8_scales", "seen"}, seen, {seen.dim(0), units, kFp8Seen}, DType::f64);
  check({"fp8_scales", "step"}, step, {kAdamwStep}, DType::f64);
  if (clip.defined()) check({"fp8_scales", "clip"}, clip, {1}, DType::f32);
  if (reset.defined()) check({"fp8_scales", "reset"}, reset, {reset.dim(0), kFp8Seen}, DType::f64);
  const Timed timed = count(OpKind::quantize, 0, hlat::bytes_of({scale, history, seen, limit}));
  if (units > 0) do_fp8_scales(scale, history, seen, limit, step, clip, reset);
}

}  // namespace hlat
