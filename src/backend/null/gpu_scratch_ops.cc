#include "backend/null/gpu_scratch_ops.h"

#include "ops/attention_shared.h"
#include "ops/gpu_scratch.h"

namespace hlat {

size_t GpuScratchOps::matmul_scratch(const MatmulShape& s) const { return gpu_matmul_scratch(s); }

size_t GpuScratchOps::matmul_fp8_scratch(const MatmulShape& s) const { return gpu_matmul_fp8_scratch(gpu_, s).total; }

size_t GpuScratchOps::attention_scratch(const AttentionShape& s, DType dtype, bool backward) const {
  const bool hopper = backward && gpu_.major == 9 && dtype == DType::bf16 && hopper_heads(s.head_dim);
  if (hopper) return hopper_attention_scratch(s.batch, s.seq, s.heads, s.head_dim);
  AttentionCase c{.shape = s, .dtype = dtype, .backward = backward};
  if (dtype == DType::bf16 && s.head_dim % 8 == 0 && s.head_dim <= 256) c.cudnn_scratch = recorded_cudnn_scratch(s, backward);
  const AttentionBy by = choose_attention(gpu_, c);
  return by == AttentionBy::cudnn ? *c.cudnn_scratch : own_attention_scratch(s.batch, s.seq, s.heads, backward);
}

size_t GpuScratchOps::cache_attention_scratch(int64_t tokens, int64_t /*segments*/, const CacheShape& s, DType /*dtype*/) const {
  return cache_attention_parts(tokens, s.heads, s.head_dim, s.max_queries, s.max_keys);
}

size_t GpuScratchOps::rmsnorm_bwd_scratch(int64_t rows, int64_t width) const { return gpu_rmsnorm_bwd_scratch(rows, width); }

size_t GpuScratchOps::embed_bwd_scratch(int64_t tokens, int64_t width) const {
  return tokens == 0 ? 0 : GpuEmbedScratch(tokens, width, recorded_sort_scratch(tokens)).total;
}

size_t GpuScratchOps::reduce_scratch(int64_t elements) const { return gpu_reduce_scratch(elements); }

}  // namespace hlat
