#include "backend/null/null_ops.h"

namespace hlat {

size_t NullOps::matmul_scratch(const MatmulShape& s) const { return scratch_model_ ? scratch_model_->matmul_scratch(s) : 0; }

size_t NullOps::attention_scratch(const AttentionShape& s, DType dtype, bool backward) const {
  return scratch_model_ ? scratch_model_->attention_scratch(s, dtype, backward) : 0;
}

size_t NullOps::cache_attention_scratch(int64_t tokens, int64_t segments, const CacheShape& s, DType dtype) const {
  return scratch_model_ ? scratch_model_->cache_attention_scratch(tokens, segments, s, dtype) : 0;
}

size_t NullOps::rmsnorm_bwd_scratch(int64_t rows, int64_t width) const {
  return scratch_model_ ? scratch_model_->rmsnorm_bwd_scratch(rows, width) : 0;
}

size_t NullOps::embed_bwd_scratch(int64_t tokens, int64_t width) const {
  return scratch_model_ ? scratch_model_->embed_bwd_scratch(tokens, width) : 0;
}

size_t NullOps::reduce_scratch(int64_t elements) const { return scratch_model_ ? scratch_model_->reduce_scratch(elements) : 0; }

size_t NullOps::fp8_scratch(int64_t elements) const { return scratch_model_ ? scratch_model_->fp8_scratch(elements) : 0; }

size_t NullOps::matmul_fp8_scratch(const MatmulShape& s) const { return scratch_model_ ? scratch_model_->matmul_fp8_scratch(s) : 0; }

}  // namespace hlat
