// Elements of saved tensors as numbers: f32 and bf16 are the types that checkpoints have.
#pragma once

#include "base/bf16.h"
#include "base/error.h"
#include "tensor/dtype.h"

namespace hlat {

inline double to_f64(float x) { return x; }
inline double to_f64(bf16 x) { return to_float(x); }

// Calls f with `data` as a pointer to elements of this type.
template <class F>
auto with_elements(DType dtype, const void* data, const F& f) {
  HLAT_CHECK(dtype == DType::f32 || dtype == DType::bf16, "a saved tensor of type {}", name_of(dtype));
  return dtype == DType::bf16 ? f(static_cast<const bf16*>(data)) : f(static_cast<const float*>(data));
}

}  // namespace hlat
