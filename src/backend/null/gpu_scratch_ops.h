// Null ops that take the scratch a GPU's ops would: for plans of a GPU on a machine without one.
#pragma once

#include "backend/null/null_ops.h"
#include "ops/gpu_facts.h"

namespace hlat {

class GpuScratchOps final : public NullOps {
 public:
  GpuScratchOps(Region& temp, GpuFacts gpu) : NullOps(temp), gpu_(std::move(gpu)) {}

  size_t matmul_scratch(const MatmulShape& s) const override;
  size_t matmul_fp8_scratch(const MatmulShape& s) const override;
  size_t attention_scratch(const AttentionShape& s, DType dtype, bool backward) const override;
  size_t cache_attention_scratch(int64_t tokens, int64_t segments, const CacheShape& s, DType dtype) const override;
  size_t rmsnorm_bwd_scratch(int64_t rows, int64_t width) const override;
  size_t embed_bwd_scratch(int64_t tokens, int64_t width) const override;
  size_t reduce_scratch(int64_t elements) const override;

 private:
  GpuFacts gpu_;
};

}  // namespace hlat
