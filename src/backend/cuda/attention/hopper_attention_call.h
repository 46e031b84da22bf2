// How the host calls the kernels of the Hopper attention backward. Plain types: both compilers read it.
#pragma once

#include <cuda.h>

#include "backend/cuda/attention/attention_kernel.h"

namespace hlat::hopper {

constexpr int kKeys = 128;      // of a block
constexpr int kPart = 64 * 64;  // floats of dq that a warpgroup computes at a time

constexpr int queries_of(int head_dim) { return head_dim == 64 ? 128 : 64; }  // that a block takes at a time

struct BackwardCall {
  CUtensorMap q, k, v, dout;
  int64_t seq, padded;  // padded: to whole blocks of keys
  int heads, kv_heads;
  int units, together;  // units: sequences times kv heads; so many of them are under way at a time
  float scale;
  float *lse, *delta;  // (B, H, padded); lse in powers of two
  float* dq;           // (B, H, tiles of queries, 2, kPart), a part in the order of the registers that made it
  int* dq_semaphore;   // (B, H, tiles of queries, 2), zeros
  int* started;        // blocks, 0
  void* dqkv;
  const float* rope;  // (T, E) cosines, then sines; or null
};

// In this order. First delta = dout . out and lse in powers of two, by head; past the end of a sequence such that weights become 0. Last
// dq from its sums: scaled, inverse RoPE, to bf16, into rows of dqkv.
cudaError_t prepare(cudaStream_t stream, const OwnAttention& x, const BackwardCall& c);
cudaError_t go_over_keys(cudaStream_t stream, const OwnAttention& x, const BackwardCall& c);
cudaError_t finish(cudaStream_t stream, const OwnAttention& x, const BackwardCall& c);

}  // namespace hlat::hopper
