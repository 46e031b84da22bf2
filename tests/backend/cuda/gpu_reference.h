// Double-precision references on the GPU for sampled results of large shapes, and the small kernels a check needs.
// Plain types only, for the GPU compiler.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hlat::gpu_reference {

struct Matrix {
  const void* data;
  bool bf16;
  int64_t ld;
  bool transposed;
};

struct Sample {
  double ref, magnitude, got;
  double product = 0;  // of a matmul: |ref| without what was there before
};

// out[s] for s in [0, count): element (i, j), drawn from s, of op(a) op(b) + before; got is that element of c. With count = m n
// every element comes once.
void matmul(Sample* out, int64_t count, Matrix c, Matrix before, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k, bool accumulate);

struct Attention {
  int64_t batch, seq, heads, kv_heads, head_dim;
  bool bf16;
  const void *qkv, *out, *dout, *dqkv;
  const float* lse;
};
// Sampled rows; each writes head_dim Samples (lse: one). work: count * group * seq * 2 doubles.
void attention_forward(Sample* out, Sample* lse, int64_t count, Attention x, double* work);
void attention_dq(Sample* dq, int64_t count, Attention x, double* work);
void attention_dkv(Sample* dk, Sample* dv, int64_t count, Attention x, double* work);

void fill(void* data, int64_t count, bool bf16, float std, uint64_t seed);  // normal numbers
int64_t differing_bytes(const void* a, const void* b, int64_t count);

}  // namespace hlat::gpu_reference
