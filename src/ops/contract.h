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

}  // namespace hlat
