#include "backend/cuda/attention/attention.h"

#include "backend/cuda/attention/attention_kernel.h"
#include "backend/cuda/attention/hopper_attention.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/cuda_check.h"
#include "base/format.h"

namespace hlat {

namespace {

OwnAttention own_call(const AttentionShape& s, const Tensor& qkv, const Tensor& out, const Tensor& lse, const Tensor& dout = {},
                      const Tensor& dqkv = {}) {
  HLAT_CHECK(qkv.dtype == DType::bf16 || qkv.dtype == DType::f32, "attention on CUDA: {}", qkv.str());
  return {.batch = s.batch,
          .seq = s.seq,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .head_dim = s.head_dim,
          .bf16 = qkv.dtype == DType::bf16,
          .qkv = qkv.data,
          .out = out.data,
          .lse = lse.as<float>(),
          .dout = dout.data,
          .dqkv = dqkv.data,
          .delta = nullptr};
}

GpuFacts facts_of_current_gpu() {
  int device = 0;
  HLAT_CUDA(cudaGetDevice(&device));
  return gpu_facts(device);
}

}  // namespace

CudaAttention::CudaAttention(cudaStream_t stream, bool deterministic, Use use)
    : stream_(stream),
      use_(use),
      gpu_(facts_of_current_gpu()),
      cudnn_(use == Use::own ? nullptr : std::make_unique<CudnnAttention>(stream, deterministic)) {}
CudaAttention::~CudaAttention() = default;

std::optional<size_t> CudaAttention::cudnn_scratch(const AttentionShape& s, DType dtype, bool backward) const {
  return cudnn_ == nullptr ? std::nullopt : cudnn_->scratch(s, dtype, backward);
}

bool CudaAttention::by_hopper(const AttentionShape& s, DType dtype) const {
  return use_ == Use::automatic && dtype == DType::bf16 && hopper_attention_takes(s.head_dim);
}

AttentionBy CudaAttention::chosen(const AttentionShape& s, DType dtype, bool backward) const {
  if (backward && by_hopper(s, dtype)) return AttentionBy::hopper;  // without a question that would build cuDNN's plan
  return choose_attention(
      gpu_, {.shape = s, .dtype = dtype, .backward = backward, .hopper = false, .cudnn_scratch = cudnn_scratch(s, dtype, backward)});
}

size_t CudaAttention::scratch(const AttentionShape& s, DType dtype, bool backward) const {
  const AttentionBy by = chosen(s, dtype, backward);
  seen_.try_emplace(fmt::format("attention {} of {} x {} tokens, {} heads of {} on {} kv heads, {}", backward ? "backward" : "forward",
                                s.batch, s.seq, s.heads, s.head_dim, s.kv_heads, name_of(dtype)),
                    describe(s, dtype, backward));
  if (by == AttentionBy::hopper) return hopper_attention_scratch(s.batch, s.seq, s.heads, s.head_dim);
  if (by == AttentionBy::cudnn) return *cudnn_scratch(s, dtype, backward);
  return own_attention_scratch(s.batch, s.seq, s.heads, backward);
}

void CudaAttention::forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch) {
  if (chosen(s, qkv.dtype, false) == AttentionBy::cudnn) return cudnn_->forward(out, lse, qkv, s, scratch);
  HLAT_CUDA(own_attention(stream_, own_call(s, qkv, out, lse)));
}

void CudaAttention::backward(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch,
                             Tensor rope) {
  const AttentionBy by = chosen(s, qkv.dtype, true);
  if (by == AttentionBy::hopper)
    return HLAT_CUDA(hopper_attention_bwd(stream_, own_call(s, qkv, out, lse, dout, dqkv), rope.as<float>(), scratch.data));
  HLAT_CHECK(!rope.defined(), "attention_bwd on CUDA: no fused inverse RoPE for {}", dqkv.str());
  if (by == AttentionBy::cudnn) return cudnn_->backward(dqkv, dout, out, lse, qkv, s, scratch);
  OwnAttention call = own_call(s, qkv, out, lse, dout, dqkv);
  call.delta = scratch.as<float>();
  HLAT_CUDA(own_attention_bwd(stream_, call));
}

std::string CudaAttention::describe() const {
  std::string text;
  if (cudnn_ == nullptr)
    text = "own kernels";
  else if (!cudnn_->usable())
    text = "own kernels (" + cudnn_->describe() + ")";
  else
    text = cudnn_->describe() + (use_ == Use::automatic && hopper_attention_takes(64) ? " and own attention backward" : "");
  for (const auto& [shape, by] : seen_) text += fmt::format("\n{}: {}", shape, by);
  return text;
}

std::string CudaAttention::describe(const AttentionShape& s, DType dtype, bool backward) const {
  switch (chosen(s, dtype, backward)) {
    case AttentionBy::hopper: return "Hopper";
    case AttentionBy::cudnn: return "cuDNN";
    case AttentionBy::own: break;
  }
  if (cudnn_ == nullptr || dtype != DType::bf16) return "own";
  const std::string refusal = cudnn_->refusal(s, backward);
  return "own: " + (refusal.empty() ? "cuDNN would need more than " + format_bytes(kLargestScratch) + " of scratch" : refusal);
}

}  // namespace hlat
