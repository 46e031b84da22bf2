// The op set on one NVIDIA GPU. Calls return at once: all work goes to one stream, in order; finish() waits for it.
// The bodies stand in one file per family: elementwise.cu, random.cu, norm.cu, loss.cu, argmax.cu, embed.cu, cache.cu, reduce.cu, adamw.cu,
// narrow.cu, fp8_*.cu. Nothing here allocates or waits. Sums have an order that depends on shapes alone, so the same call gives the same
// bits.
#pragma once

#include <memory>

#include "backend/cuda/attention/attention.h"
#include "backend/cuda/matmul/matmul.h"
#include "ops/ops.h"

namespace hlat {

// What the ops of one backend share. The stream belongs to the backend, which outlives its ops.
struct CudaContext {
  CudaContext(int device_index, GpuFacts facts, cudaStream_t work, const std::string& cache_dir, bool deterministic)
      : device(device_index), gpu(std::move(facts)), stream(work), matmul(work, cache_dir), attention(work, deterministic) {}
  int device;
  GpuFacts gpu;
  cudaStream_t stream;
  CudaMatmul matmul;
  CudaAttention attention;
  // Of inference, once it is asked for: it meets many shapes, each seldom, so nothing is measured for them, and what it chooses must not
  // become part of what a training run has chosen.
  std::unique_ptr<CudaMatmul> inference_matmul = nullptr;
};

class CudaOps final : public Ops {
 public:
  // matmul: the context's for training or for inference
  CudaOps(Region& temp, std::shared_ptr<CudaContext> context, CudaMatmul& matmul)
      : Ops(temp), context_(std::move(context)), matmul_(matmul) {}

  size_t matmul_scratch(const MatmulShape& s) const override { return matmul_.scratch(s); }
  size_t attention_scratch(const AttentionShape& s, DType dtype, bool backward) const override {
    return context_->attention.scratch(s, dtype, backward);
  }
  size_t cache_attention_scratch(int64_t tokens, int64_t segments, const CacheShape& s, DType dtype) const override;
  size_t rmsnorm_bwd_scratch(int64_t rows, int64_t width) const override;
  size_t embed_bwd_scratch(int64_t tokens, int64_t width) const override;
  size_t reduce_scratch(int64_t elements) const override;
  size_t matmul_fp8_scratch(const MatmulShape& s) const override;
  ~CudaOps() override;
  void finish() override;

 protected:
  size_t mark_time() override;
  double seconds_between(size_t from, size_t to) override;
  void forget_marks() override { marked_ = 0; }
  void do_embed(Tensor y, Tensor ids, Tensor table, int64_t first) override;
  void do_embed_bwd(Tensor dtable, Tensor ids, Tensor dy, int64_t first, Tensor scratch) override;
  void do_matmul(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) override { matmul_.run(c, a, b, s, scratch); }
  void do_matmul_add(Tensor c, Tensor a, Tensor b, Tensor residual, const MatmulShape& s, Tensor scratch) override {
    MatmulShape sum = s;
    sum.accumulate = true;
    matmul_.run_add(c, a, b, residual, sum, scratch);
  }
  void do_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) override;
  void do_add_rmsnorm(Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps) override;
  void do_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args, Tensor scratch) override;
  void do_rope_table(Tensor table, const RopeFrequencies& frequencies) override;
  void do_rope(Tensor qkv, Tensor table, AttentionShape s, int sign) override;
  void do_attention(Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor scratch) override {
    context_->attention.forward(out, lse, qkv, s, scratch);
  }
  void do_attention_bwd(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor scratch) override {
    context_->attention.backward(dqkv, dout, out, lse, qkv, s, scratch);
  }
  void do_attention_bwd_rope(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, Tensor rope, AttentionShape s,
                             Tensor scratch) override {
    if (!context_->attention.fuses_inverse_rope(s, qkv.dtype))
      return Ops::do_attention_bwd_rope(dqkv, dout, out, lse, qkv, rope, s, scratch);
    context_->attention.backward(dqkv, dout, out, lse, qkv, s, scratch, rope);
  }
  void do_cache_append(Tensor cache, Tensor qkv, Tensor table, Tensor positions, Tensor slots, const CacheShape& s) override;
  void do_cache_attention(Tensor out, Tensor qkv, Tensor cache, Tensor segments, const CacheShape& s, Tensor scratch) override;
  void do_swiglu(Tensor y, Tensor gu) override;
  void do_swiglu_bwd(Tensor dgu, Tensor dy, Tensor gu) override;
  void do_add(Tensor y, Tensor a, Tensor b) override;
  void do_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) override;
  void do_cross_entropy_merge(Tensor stats, Tensor parts) override;
  void do_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) override;
  void do_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) override;
  void do_cross_entropy_whole(Tensor loss_sum, Tensor logits, Tensor stats, Tensor targets, double scale) override;
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

  // fp8_*.cu. Results in bf16 that nobody reads are never in memory.
  void do_quantize(const Fp8Store& out, Tensor x) override;
  void do_quantize_flat(Tensor dst, Tensor src, Tensor scale, Tensor seen) override;
  void do_transpose(Tensor y, Tensor x) override;
  void do_dequantize(Tensor y, Tensor x, Tensor scale) override;
  void do_fp8_scales(Tensor scale, Tensor history, Tensor seen, Tensor limit, Tensor step, Tensor clip, Tensor reset) override;
  void do_rmsnorm_fp8(const Fp8Store& out, Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) override;
  void do_add_rmsnorm_fp8(const Fp8Store& out, Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps) override;
  void do_swiglu_fp8(const Fp8Store& out, Tensor y, Tensor gu) override;
  void do_swiglu_bwd_fp8(const Fp8Store& out, Tensor dgu, Tensor dy, Tensor gu) override;
  // matmul/matmul_fp8.cc
  void do_matmul_fp8(Tensor c, const Fp8Operand& a, const Fp8Operand& b, Tensor residual, const MatmulShape& s, bool fast_sums,
                     Tensor scratch) override;

 private:
  cudaStream_t stream() const { return context_->stream; }

  std::shared_ptr<CudaContext> context_;
  CudaMatmul& matmul_;
  std::vector<cudaEvent_t> events_;  // kept for the next time
  size_t marked_ = 0;                // of them in use
};

}  // namespace hlat
