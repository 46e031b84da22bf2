// A matmul for what cuBLASLt refuses: any alignment, any stride. Correct and deterministic, not fast.
// Plain types only: the GPU compiler does not get along with the formatting library behind our tensors.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hlat {

struct PlainMatmul {
  void* c;
  const void *a, *b;
  int64_t m, n, k;
  int64_t ldc, lda, ldb;  // elements from row to row
  bool trans_a, trans_b, accumulate;
  bool in_bf16, out_bf16;  // else f32
};

cudaError_t plain_matmul(cudaStream_t stream, const PlainMatmul& x);

}  // namespace hlat
