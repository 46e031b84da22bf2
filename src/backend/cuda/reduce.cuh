// The parts of a reduction over a whole tensor, shared by the files that reduce (reduce.cu, adamw.cu).
#pragma once

#include "backend/cuda/device.cuh"

namespace hlat {

// Blocks of the first pass: one per 2048 elements, up to eight for each multiprocessor of a large GPU.
inline int64_t reduce_parts(int64_t elements) { return std::clamp<int64_t>(ceil_div(elements, 2048), 1, 1056); }

// out = the sum of the parts, in an order that depends on their count alone.
void fold_parts(double* out, const double* parts, int64_t count, cudaStream_t stream);

}  // namespace hlat
