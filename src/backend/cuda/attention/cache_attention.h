// Attention of queries over keys and values in a cache, on CUDA. Who computes a segment follows from the shape and from its own number of
// queries, so that its bits do not depend on the others of the call:
//   few queries: cache_attention_few.cu; where all segments are such, a block per chunk of keys, whose parts are then folded in order
//   many queries, bf16, head sizes 64 and 128: tiles of queries on tensor cores (cache_attention_mma.cu)
//   many queries else, up to head size 256: the first kernel, without chunks
// Counts and lengths are read from the segments, on the device: max_queries and max_keys only bound the grids, so a recorded call serves
// any lengths up to them. No atomics. Plain types, as the attention kernels have.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "ops/attention_shared.h"

namespace hlat {

struct CacheAttention {
  int64_t tokens, segments, heads, kv_heads, head_dim;
  int64_t max_queries, max_keys;
  bool bf16;  // else f32
  const void *qkv, *cache;
  void* out;
  const int32_t* segment;  // KvSegments
  float* scratch;          // cache_attention_parts() bytes
};

inline constexpr int64_t kCacheAttentionMaxHead = 256;

cudaError_t run_cache_attention(cudaStream_t stream, const CacheAttention& x);

bool mma_cache_attention_takes(const CacheAttention& x);
cudaError_t mma_cache_attention(cudaStream_t stream, const CacheAttention& x);

}  // namespace hlat
