// The CPU backend: threads over rows, per-instruction-set kernels inside, oneDNN for matmul.
#pragma once

#include <cmath>
#include <memory>
#include <string>

#include "backend/cpu/isa.h"
#include "backend/cpu/matmul.h"
#include "base/threads.h"
#include "ops/ops.h"

namespace hlat {

struct CpuOptions {
  int threads = 1;
  std::string isa = "auto";
  std::string why_not_gpu = {};  // for the log, where GPUs are there and cannot be used
  bool few_rows = false;         // products of few rows have a way of their own: for inference, whose bits no training run depends on
};

class CpuOps final : public Ops {
 public:
  CpuOps(Region& temp, const CpuOptions& options);

  size_t matmul_scratch(const MatmulShape& s) const override;
  size_t attention_scratch(const AttentionShape& s, DType dtype, bool backward) const override;
  size_t cache_attention_scratch(int64_t tokens, int64_t segments, const CacheShape& s, DType dtype) const override;
  size_t rmsnorm_bwd_scratch(int64_t rows, int64_t width) const override;
  size_t fp8_scratch(int64_t elements) const override;
  size_t matmul_fp8_scratch(const MatmulShape& s) const override;

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

 private:
  void update(const AdamwTensors& t, const AdamwScalars& s);
  double sum_of(Tensor x, double (*kernel)(const void* x, int64_t n));

  const CpuKernels& kernels_;
  Threads threads_;
  std::unique_ptr<CpuMatmul> matmul_;
};

inline constexpr int64_t kGrain = 16384;  // elements below which a second thread costs more than it saves
inline int64_t row_grain(int64_t width) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(width, 1)); }
// Most parts of a reduction: fixed by the size alone, so sums do not depend on the number of threads.
inline constexpr int64_t kSumParts = 64;

// 0 for f32, 1 for bf16: the index into kernel pairs.
inline int elem(DType t) {
  HLAT_CHECK(t == DType::f32 || t == DType::bf16, "the CPU backend has no {} kernels", name_of(t));
  return t == DType::bf16 ? 1 : 0;
}
inline float score_scale(int64_t head_dim) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim))); }
inline std::byte* at(const Tensor& t, int64_t element) {
  return static_cast<std::byte*>(t.data) + element * static_cast<int64_t>(size_of(t.dtype));
}

}  // namespace hlat
