// A matmul for what cuBLASLt refuses: any alignment, any stride. Correct and deterministic, not fast.
// Plain types only: the GPU compiler does not get along with the formatting library behind our tensors.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hlat {

enum class PlainType { f32, bf16, e4m3, e5m2 };

struct PlainMatmul {
  void* c;
  const void *a, *b;
  int64_t m, n, k;
  int64_t ldc, lda, ldb;  // elements from row to row
  bool trans_a, trans_b, accumulate;
  // f32 to f32, bf16 to f32 or bf16, FP8 (not twice E5M2) to f32 or bf16
  PlainType a_type, b_type, c_type;
  const float *unscale_a, *unscale_b;  // of FP8: what op(a) and op(b) are multiplied by
};

cudaError_t plain_matmul(cudaStream_t stream, const PlainMatmul& x);

}  // namespace hlat
