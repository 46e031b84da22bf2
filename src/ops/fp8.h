// FP8 tensors: a value x is stored as x * scale, rounded to the nearest (ties to even) and saturated. The scale is a power of two, so what
// a value loses depends on its own mantissa alone, but for values that saturate or fall below the smallest one. It lies on the device and
// is set between steps (Ops::fp8_scales).
//
// Products of FP8 read both operands along the sum: an activation is stored as it is for the forward, and transposed for the gradient of a
// weight. One pass stores both.
#pragma once

#include "base/fp8.h"
#include "tensor/tensor.h"

namespace hlat {

inline constexpr int64_t kFp8Scale = 8;  // (kFp8Scale) f32: the scale, at kFp8Inverse its inverse; cuBLASLt wants it aligned to 16 bytes
inline constexpr int64_t kFp8Inverse = 4;
inline constexpr int64_t kFp8History = 16;  // steps whose largest values decide on a scale
inline constexpr int kFp8Exponent = 60;     // scales are powers of two from 2^-60 to 2^60

// What was met while values were stored: a tensor of (kFp8Seen) f64.
struct Fp8Seen {
  double largest = 0;    // absolute value, before the scale; NaN above all
  double saturated = 0;  // finite values beyond the largest one of the type
  double lost = 0;       // values that are not 0 and became 0
};
inline constexpr int64_t kFp8Seen = sizeof(Fp8Seen) / sizeof(double);

// Where an op stores its result in FP8. A value that is not finite becomes NaN.
struct Fp8Store {
  Tensor rows = {};     // (N, C) or undefined
  Tensor columns = {};  // (C, N) or undefined: the transpose
  Tensor scale = {};    // (kFp8Scale)
  Tensor seen = {};     // (kFp8Seen), updated; undefined: nobody counts

  DType dtype() const { return rows.defined() ? rows.dtype : columns.dtype; }
};

// An operand of a product, (rows, K) along the sum.
struct Fp8Operand {
  Tensor values;
  Tensor scale;  // (kFp8Scale)
};

}  // namespace hlat
