// RefOps: the reference backend. Every op forward and backward in double precision with plain loops, one formula per
// line, no blocking and no threads. Weights, activations, gradients, moments and statistics are f64; ids are i32.
// Backward formulas are written by hand; ref_ops_test.cc compares them with complex-step derivatives of scalar_llama.h.
// ref_ops.cc: data movement, matmul, norm, RoPE, SwiGLU. ref_attention.cc: attention. ref_cache.cc: attention over a cache, argmax.
// ref_loss.cc: loss and optimizer. ref_narrow.cc: plain ops. ref_fp8.cc: FP8, on the types that its contract names.
#pragma once

#include <bit>

#include "base/bf16.h"
#include "ops/ops.h"

namespace hlat {

class RefOps : public Ops {
 public:
  explicit RefOps(Region& temp) : Ops(temp) {}

 protected:
  void do_embed(Tensor y, Tensor ids, Tensor table, int64_t first) override;
  void do_embed_bwd(Tensor dtable, Tensor ids, Tensor dy, int64_t first, Tensor scratch) override;
  void do_matmul(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) override;
  void do_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) override;
  void do_add_rmsnorm(Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps) override;
  void do_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args, Tensor scratch) override;
  void do_rope_table(Tensor table, const RopeFrequencies& frequencies) override;
  void do_rope(Tensor qkv, Tensor table, AttentionShape s, int sign) override;
  void do_attention(Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor scratch) override;
  void do_attention_bwd(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor scratch) override;
  void do_cache_append(Tensor cache, Tensor qkv, Tensor table, Tensor positions, Tensor slots, const CacheShape& s) override;
  void do_cache_attention(Tensor out, Tensor qkv, Tensor cache, Tensor segments, const CacheShape& s, Tensor scratch) override;
  void do_swiglu(Tensor y, Tensor gu) override;
  void do_swiglu_bwd(Tensor dgu, Tensor dy, Tensor gu) override;
  void do_add(Tensor y, Tensor a, Tensor b) override;
  void do_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) override;
  void do_cross_entropy_merge(Tensor stats, Tensor parts) override;
  void do_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) override;
  void do_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) override;
  void do_argmax(Tensor ids, Tensor values, Tensor logits, int64_t first) override;
  void do_cast(Tensor dst, Tensor src, Rounding rounding, NoiseKey key, const ElementMap& map) override;
  void do_fill(Tensor t, double value) override;
  void do_fill_normal(Tensor t, double std, NoiseKey key, const ElementMap& map) override;
  void do_sum(Tensor out, Tensor x, Tensor scratch) override;
  void do_sum_squares(Tensor out, std::span<const Tensor> x, Tensor scratch) override;
  void do_clip_scale(Tensor scale, Tensor sq, double max_norm) override;
  void do_adamw(std::span<const AdamwItem> items, Tensor scratch) override;
  void do_checksum(Tensor out, Tensor x, Tensor scratch) override;
  void do_narrow_softmax(Tensor p, Tensor lse, Tensor scores, double scale) override;
  void do_narrow_softmax_bwd(Tensor dscores, Tensor dp, Tensor p, double scale) override;
  void do_narrow_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) override;
  void do_narrow_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args, Tensor scratch) override;
  void do_narrow_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) override;
  void do_narrow_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) override;
  void do_narrow_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) override;
  void do_round_rows(Tensor dst, Tensor src, NoiseKey key, const ElementMap& map) override;
  void do_largest(Tensor out, Tensor x, bool absolute, Tensor scratch) override;
  void do_add_losses(Tensor table, Tensor stats, Tensor targets, Tensor groups, int64_t first, int64_t seq) override;
  void do_quantize(const Fp8Store& out, Tensor x) override;
  void do_quantize_flat(Tensor dst, Tensor src, Tensor scale, Tensor seen) override;
  void do_transpose(Tensor y, Tensor x) override;
  void do_dequantize(Tensor y, Tensor x, Tensor scale) override;
  void do_matmul_fp8(Tensor c, const Fp8Operand& a, const Fp8Operand& b, Tensor residual, const MatmulShape& s, bool fast_sums,
                     Tensor scratch) override;
  void do_fp8_scales(Tensor scale, Tensor history, Tensor seen, Tensor limit, Tensor step, Tensor clip, Tensor reset) override;
};

// Row `i` of an f64 matrix, or element i of an f64 vector.
inline double* row(const Tensor& t, int64_t i = 0) {
  HLAT_CHECK(t.dtype == DType::f64, "the reference backend is f64 only, not {}", t.str());
  return t.as<double>() + i * t.stride[0];
}

// Stochastic rounding: up with probability equal to the distance from below. Unbiased for finite values;
// `noise` is 16 uniform random bits. Infinity and NaN pass unchanged.
inline bf16 to_bf16_stochastic(float x, uint16_t noise) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7f800000u) == 0x7f800000u) return to_bf16(x);
  return bf16{static_cast<uint16_t>((u + noise) >> 16)};
}

}  // namespace hlat
