// Checks and sizes shared by the files of the Ops front; no one else includes this.
#pragma once

#include "ops/ops.h"

namespace hlat {

inline bool is_float(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f64; }
// Statistics of tensors of type t.
inline DType stat_type(DType t) { return t == DType::f64 ? DType::f64 : DType::f32; }
// A gradient or product of tensors of type t is kept in t, or in f32.
inline bool accumulates(DType sum, DType t) { return sum == t || (sum == DType::f32 && t == DType::bf16); }
// Only exact aliases are recognised: interleaved column views of one buffer are legal, and an empty tensor aliases nothing.
inline bool same_data(const Tensor& a, const Tensor& b) { return a.data != nullptr && a.data == b.data && a.numel() > 0 && b.numel() > 0; }
inline double bytes_of(std::initializer_list<Tensor> tensors) {
  double sum = 0;
  for (const Tensor& t : tensors) sum += static_cast<double>(t.bytes());
  return sum;
}
inline double numel(const Tensor& t) { return static_cast<double>(t.numel()); }

// Names an argument in messages.
struct Arg {
  const char* op;
  const char* name;
};

inline void check_shape(Arg arg, const Tensor& t, const Shape& shape) {
  HLAT_CHECK(t.shape == shape, "{}: {} is {}, expected shape {}", arg.op, arg.name, t.str(), shape.str());
  HLAT_CHECK(t.is_contiguous(), "{}: {} {} has strides ({}, {})", arg.op, arg.name, t.str(), t.stride[0], t.stride[1]);
}

inline void check_type(Arg arg, const Tensor& t, DType dtype) {
  HLAT_CHECK(t.dtype == dtype, "{}: {} is {}, expected {}", arg.op, arg.name, t.str(), name_of(dtype));
}

inline void check(Arg arg, const Tensor& t, const Shape& shape, DType dtype) {
  check_shape(arg, t, shape);
  check_type(arg, t, dtype);
}

// A contiguous tensor of any shape with floating-point elements.
inline void check_flat(Arg arg, const Tensor& t) {
  HLAT_CHECK(t.defined() && is_float(t.dtype) && t.is_contiguous(), "{}: {} is {}, expected contiguous floats", arg.op, arg.name, t.str());
}

inline void check_matrix(Arg arg, const Tensor& t) {
  HLAT_CHECK(t.rank() == 2, "{}: {} is {}, expected a matrix", arg.op, arg.name, t.str());
  check_flat(arg, t);
}

// A matrix whose rows may be strided.
inline void check_strided(Arg arg, const Tensor& t) {
  HLAT_CHECK(t.rank() == 2 && is_float(t.dtype), "{}: {} is {}, expected a matrix of floats", arg.op, arg.name, t.str());
  HLAT_CHECK(t.stride[1] == 1 && (t.dim(0) <= 1 || t.stride[0] >= t.dim(1)), "{}: {} {} has strides ({}, {})", arg.op, arg.name, t.str(),
             t.stride[0], t.stride[1]);
}

// Contracts that the ops of a family share, the fused ones and the plain ones.
inline void check_norm(const char* op, const Tensor& y, const Tensor& rstd, const Tensor& x, const Tensor& w, double eps) {
  check_matrix({op, "x"}, x);
  check({op, "y"}, y, x.shape, x.dtype);
  check({op, "rstd"}, rstd, {x.dim(0)}, stat_type(x.dtype));
  check({op, "w"}, w, {x.dim(1)}, x.dtype);
  HLAT_CHECK(eps >= 0, "{}: eps {}", op, eps);
}

inline void check_norm_bwd(const char* op, const Tensor& dx, const Tensor& dw, const Tensor& dy, const Tensor& x, const Tensor& w,
                           const Tensor& rstd, bool add_dx) {
  check_matrix({op, "x"}, x);
  check({op, "dx"}, dx, x.shape, x.dtype);
  check({op, "dy"}, dy, x.shape, x.dtype);
  check({op, "w"}, w, {x.dim(1)}, x.dtype);
  check({op, "rstd"}, rstd, {x.dim(0)}, stat_type(x.dtype));
  check_shape({op, "dw"}, dw, {x.dim(1)});
  HLAT_CHECK(accumulates(dw.dtype, x.dtype), "{}: dw {}, x {}", op, dw.str(), x.str());
  HLAT_CHECK(!same_data(dx, x) && !(add_dx && same_data(dx, dy)), "{}: dx {} is x, or is dy with add_dx", op, dx.str());
}

// Of tokens, each with a target.
inline void check_loss_stats(const char* op, const Tensor& stats, const Tensor& targets) {
  HLAT_CHECK(stats.rank() == 2 && stats.dtype == stat_type(stats.dtype), "{}: stats {}", op, stats.str());
  check_shape({op, "stats"}, stats, {stats.dim(0), 3});
  check({op, "targets"}, targets, {stats.dim(0)}, DType::i32);
}

// Of the columns of a vocabulary from `first` on.
inline void check_logits(const char* op, const Tensor& logits, const Tensor& stats, const Tensor& targets, int64_t first) {
  check_matrix({op, "logits"}, logits);
  check({op, "stats"}, stats, {logits.dim(0), 3}, stat_type(logits.dtype));
  check({op, "targets"}, targets, {logits.dim(0)}, DType::i32);
  HLAT_CHECK(first >= 0 && logits.dim(1) > 0, "{}: first {}, logits {}", op, first, logits.str());
}

}  // namespace hlat
