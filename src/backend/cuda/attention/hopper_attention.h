// Attention backward for Hopper GPUs: bf16, head sizes 64 and 128, any length and grouping. Deterministic (ADR 0009).
// Built for sm_90a alone (cmake/cuda.cmake). Plain types: both compilers read this.
#pragma once

#include <cuda.h>

#include "backend/cuda/attention/attention_kernel.h"

namespace hlat {

bool hopper_attention_takes(int64_t head_dim);  // and whether the current device is a Hopper
// `scratch`, of hopper_attention_scratch() bytes, replaces x.delta. rope: null, or the (T, E) table of the inverse RoPE of dq and dk.
cudaError_t hopper_attention_bwd(cudaStream_t stream, const OwnAttention& x, const float* rope, void* scratch);

// How the host calls the kernels.
namespace hopper {

constexpr int kKeys = kHopperKeys;
constexpr int kPart = 64 * 64;  // floats of dq that a warpgroup computes at a time

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

}  // namespace hopper

}  // namespace hlat
