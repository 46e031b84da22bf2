// c (m, n) = a (m, k) b (n, k)^T in bf16 with f32 sums, for few rows of a, as when a model generates: b is then read once and nothing else
// counts, so these kernels are held against the memory's rate, not against products per second.
//   few_rows_matmul     up to 16 rows, on all GPUs
//   hopper_few_rows     up to 64 rows, on Hopper GPUs (built for sm_90a alone)
// Sums run in an order that depends on k alone: from one of them a row of c has the same bits beside any other rows.
// Plain types only: the GPU compiler does not get along with the formatting library behind our tensors.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hlat {

struct FewRowsMatmul {
  void* c;
  const void* residual;  // laid out as c, may be c; added to the rounded product. Null: none
  const void *a, *b;
  int64_t m, n, k;
  int64_t ldc, lda, ldb;  // elements from row to row
  bool out_bf16;          // else f32
};

constexpr int64_t kFewRows = 16, kHopperFewRows = 64;

// Of bf16 operands, a as it is and b transposed.
bool few_rows_matmul_takes(const FewRowsMatmul& x);
cudaError_t few_rows_matmul(cudaStream_t stream, const FewRowsMatmul& x);

bool hopper_few_rows_takes(const FewRowsMatmul& x);  // and whether the current device is a Hopper
cudaError_t hopper_few_rows(cudaStream_t stream, const FewRowsMatmul& x);

}  // namespace hlat
