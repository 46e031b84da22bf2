// A strided view: columns [begin, end) of a matrix.
#pragma once

#include "tensor/tensor.h"

namespace hlat {

inline Tensor columns(Tensor t, int64_t begin, int64_t end) {
  HLAT_CHECK(t.rank() == 2 && 0 <= begin && begin <= end && end <= t.dim(1), "columns [{}, {}) of {}", begin, end, t.str());
  if (t.data != nullptr) t.data = t.as<char>() + begin * t.stride[1] * static_cast<int64_t>(size_of(t.dtype));
  t.shape.dim[1] = end - begin;
  return t;
}

}  // namespace hlat
