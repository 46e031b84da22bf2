// A strided view: columns [begin, end) of a matrix.
#pragma once

#include "tensor/tensor.h"

namespace hlat {

inline Tensor columns(const Tensor& t, int64_t begin, int64_t end) { return t.columns(begin, end); }

}  // namespace hlat
