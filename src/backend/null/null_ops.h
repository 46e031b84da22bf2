// Ops that do nothing. With measuring Regions the real step code runs on it, and what that run asks for is the plan.
// Scratch is asked from the backend being planned for, so its temporary memory is part of the plan.
#pragma once

#include "ops/ops.h"

namespace hlat {

class NullOps : public Ops {
 public:
  // scratch_model answers the scratch queries and must outlive this; without one no op needs scratch.
  explicit NullOps(Region& temp, const Ops* scratch_model = nullptr) : Ops(temp), scratch_model_(scratch_model) {}

  size_t matmul_scratch(const MatmulShape& s) const override;
  size_t attention_scratch(const AttentionShape& s, DType dtype, bool backward) const override;
  size_t cache_attention_scratch(int64_t tokens, int64_t segments, const CacheShape& s, DType dtype) const override;
  size_t rmsnorm_bwd_scratch(int64_t rows, int64_t width) const override;
  size_t embed_bwd_scratch(int64_t tokens, int64_t width) const override;
  size_t reduce_scratch(int64_t elements) const override;
  size_t fp8_scratch(int64_t elements) const override;
  size_t matmul_fp8_scratch(const MatmulShape& s) const override;

 protected:
  void do_embed(Tensor, Tensor, Tensor, int64_t) override {}
  void do_embed_bwd(Tensor, Tensor, Tensor, int64_t, Tensor) override {}
  void do_matmul(Tensor, Tensor, Tensor, const MatmulShape&, Tensor) override {}
  void do_rmsnorm(Tensor, Tensor, Tensor, Tensor, double) override {}
  void do_add_rmsnorm(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, double) override {}
  void do_rmsnorm_bwd(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, NormBwdArgs, Tensor) override {}
  void do_rope_table(Tensor, const RopeFrequencies&) override {}
  void do_rope(Tensor, Tensor, AttentionShape, int) override {}
  void do_attention(Tensor, Tensor, Tensor, AttentionShape, Tensor) override {}
  void do_attention_bwd(Tensor, Tensor, Tensor, Tensor, Tensor, AttentionShape, Tensor) override {}
  void do_cache_append(Tensor, Tensor, Tensor, Tensor, Tensor, const CacheShape&) override {}
  void do_cache_attention(Tensor, Tensor, Tensor, Tensor, const CacheShape&, Tensor) override {}
  void do_swiglu(Tensor, Tensor) override {}
  void do_swiglu_bwd(Tensor, Tensor, Tensor) override {}
  void do_add(Tensor, Tensor, Tensor) override {}
  void do_cross_entropy_partial(Tensor, Tensor, Tensor, int64_t) override {}
  void do_cross_entropy_merge(Tensor, Tensor) override {}
  void do_cross_entropy_finish(Tensor, Tensor, Tensor) override {}
  void do_cross_entropy_bwd(Tensor, Tensor, Tensor, Tensor, int64_t, double) override {}
  void do_argmax(Tensor, Tensor, Tensor, int64_t) override {}
  void do_cast(Tensor, Tensor, Rounding, NoiseKey, const ElementMap&) override {}
  void do_fill(Tensor, double) override {}
  void do_fill_normal(Tensor, double, NoiseKey, const ElementMap&) override {}
  void do_sum(Tensor, Tensor, Tensor) override {}
  void do_sum_squares(Tensor, std::span<const Tensor>, Tensor) override {}
  void do_clip_scale(Tensor, Tensor, double) override {}
  void do_adamw(std::span<const AdamwItem>, Tensor) override {}
  void do_checksum(Tensor, Tensor, Tensor) override {}
  void do_narrow_softmax(Tensor, Tensor, Tensor, double) override {}
  void do_narrow_softmax_bwd(Tensor, Tensor, Tensor, double) override {}
  void do_narrow_rmsnorm(Tensor, Tensor, Tensor, Tensor, double) override {}
  void do_narrow_rmsnorm_bwd(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, NormBwdArgs, Tensor) override {}
  void do_narrow_cross_entropy_partial(Tensor, Tensor, Tensor, int64_t) override {}
  void do_narrow_cross_entropy_finish(Tensor, Tensor, Tensor) override {}
  void do_narrow_cross_entropy_bwd(Tensor, Tensor, Tensor, Tensor, int64_t, double) override {}
  void do_round_rows(Tensor, Tensor, NoiseKey, const ElementMap&) override {}
  void do_largest(Tensor, Tensor, bool, Tensor) override {}
  void do_add_losses(Tensor, Tensor, Tensor, Tensor, int64_t, int64_t) override {}
  void do_quantize(const Fp8Store&, Tensor) override {}
  void do_rmsnorm_fp8(const Fp8Store&, Tensor, Tensor, Tensor, Tensor, double) override {}
  void do_add_rmsnorm_fp8(const Fp8Store&, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, double) override {}
  void do_swiglu_fp8(const Fp8Store&, Tensor, Tensor) override {}
  void do_swiglu_bwd_fp8(const Fp8Store&, Tensor, Tensor, Tensor) override {}
  void do_quantize_flat(Tensor, Tensor, Tensor, Tensor) override {}
  void do_transpose(Tensor, Tensor) override {}
  void do_dequantize(Tensor, Tensor, Tensor) override {}
  void do_matmul_fp8(Tensor, const Fp8Operand&, const Fp8Operand&, Tensor, const MatmulShape&, bool, Tensor) override {}
  void do_fp8_scales(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor) override {}

 private:
  const Ops* scratch_model_;
};

}  // namespace hlat
