// Our own attention kernels: f32 and bf16, any head size up to 256, always there. They are the reference for cuDNN's and what
// runs where cuDNN does not. Arithmetic is f32, for most bf16 shapes on tensor cores (attention_mma.cu). No atomics: every sum has one
// order, so equal calls give equal bits. Plain types only: the GPU compiler does not get along with the formatting library behind our
// tensors.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "ops/attention_shared.h"

namespace hlat {

// Row n of qkv and dqkv is [q heads | k heads | v heads]; lse is (B, H, T).
struct OwnAttention {
  int64_t batch, seq, heads, kv_heads, head_dim;
  bool bf16;  // else f32
  const void* qkv;
  void* out;  // read by the backward
  float* lse;
  // backward only
  const void* dout;
  void* dqkv;
  float* delta;  // scratch, (B, H, T): dout . out
};

cudaError_t own_attention(cudaStream_t stream, const OwnAttention& x);
cudaError_t own_attention_bwd(cudaStream_t stream, const OwnAttention& x);

// The kernels on tensor cores, which the two above use where they can. The backward needs delta.
bool mma_attention_takes(const OwnAttention& x);
cudaError_t mma_attention(cudaStream_t stream, const OwnAttention& x, bool backward);

}  // namespace hlat
