#include "backend/cuda/attention/attention.h"

#include "backend/cuda/attention/attention_kernel.h"
#include "backend/cuda/attention/hopper_attention.h"
#include "backend/cuda/cuda_check.h"

namespace hlat {

namespace {

OwnAttention own_call(const AttentionShape& s, const Tensor& qkv, const Tensor& out, const Tensor& lse, const Tensor& dout = {},
                      const Tensor& dqkv = {}) {
  HLAT_CHECK(s.head_dim <= kOwnAttentionMaxHead, "head size {} is above {}", s.head_dim, kOwnAttentionMaxHead);
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

}  // namespace

CudaAttention::CudaAttention(cudaStream_t stream, bool deterministic, Use use)
    : stream_(stream), use_(use), cudnn_(use == Use::own ? nullptr : std::make_unique<CudnnAttention>(stream, deterministic)) {}
CudaAttention::~CudaAttention() = default;

bool CudaAttention::by_cudnn(const AttentionShape& s, DType dtype, bool backward) const {
  return cudnn_ != nullptr && cudnn_->scratch(s, dtype, backward).has_value();
}

bool CudaAttention::by_hopper(const AttentionShape& s, DType dtype) const {
  return use_ == Use::automatic && dtype == DType::bf16 && hopper_attention_takes(s.head_dim);
}

size_t CudaAttention::scratch(const AttentionShape& s, DType dtype, bool backward) const {
  if (backward && by_hopper(s, dtype)) return hopper_attention_scratch(s.batch, s.seq, s.heads, s.head_dim);
  if (by_cudnn(s, dtype, backward)) return *cudnn_->scratch(s, dtype, backward);
  return own_attention_scratch(s.batch, s.seq, s.heads, backward);
}

void CudaAttention::forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch) {
  if (by_cudnn(s, qkv.dtype, false)) return cudnn_->forward(out, lse, qkv, s, scratch);
  HLAT_CUDA(own_attention(stream_, own_call(s, qkv, out, lse)));
}

void CudaAttention::backward(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch,
                             Tensor rope) {
  if (by_hopper(s, qkv.dtype))
    return HLAT_CUDA(hopper_attention_bwd(stream_, own_call(s, qkv, out, lse, dout, dqkv), rope.as<float>(), scratch.data));
  HLAT_CHECK(!rope.defined(), "attention_bwd on CUDA: no fused inverse RoPE for {}", dqkv.str());
  if (by_cudnn(s, qkv.dtype, true)) return cudnn_->backward(dqkv, dout, out, lse, qkv, s, scratch);
  OwnAttention call = own_call(s, qkv, out, lse, dout, dqkv);
  call.delta = scratch.as<float>();
  HLAT_CUDA(own_attention_bwd(stream_, call));
}

std::string CudaAttention::describe() const {
  if (cudnn_ == nullptr) return "own kernels";
  if (!cudnn_->usable()) return "own kernels (" + cudnn_->describe() + ")";
  return cudnn_->describe() + (use_ == Use::automatic && hopper_attention_takes(64) ? " and own attention backward" : "");
}

std::string CudaAttention::describe(const AttentionShape& s, DType dtype, bool backward) const {
  if (backward && by_hopper(s, dtype)) return "Hopper";
  if (by_cudnn(s, dtype, backward)) return "cuDNN";
  if (cudnn_ == nullptr || dtype != DType::bf16) return "own";
  return "own: " + cudnn_->refusal(s, backward);
}

}  // namespace hlat
