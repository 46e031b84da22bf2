// The arithmetic of the collectives: out[i] = ((terms[0][i] + terms[1][i]) + terms[2][i]) + ..., in f32 for f32 and bf16,
// in f64 for f64. bf16 is rounded once, at the end, to nearest even. out may be one of the terms.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/dtype.h"

namespace hlat {

void sum_in_order(void* out, const std::vector<const void*>& terms, int64_t count, DType dtype);

}  // namespace hlat
