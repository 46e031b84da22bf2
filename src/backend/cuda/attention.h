// Causal attention on CUDA: cuDNN's where it takes the shape (bf16, head sizes it knows), else our own kernels. Both keep the same lse,
// so one may do the forward and the other the backward. The backward is deterministic unless asked otherwise.
#pragma once

#include <memory>
#include <string>

#include "backend/cuda/cudnn_attention.h"
#include "ops/ops.h"

namespace hlat {

class CudaAttention {
 public:
  enum class Use { automatic, own };  // own: never cuDNN
  explicit CudaAttention(cudaStream_t stream, bool deterministic = true, Use use = Use::automatic);
  ~CudaAttention();
  CudaAttention(const CudaAttention&) = delete;
  CudaAttention& operator=(const CudaAttention&) = delete;

  // Exact; the first question about a shape builds cuDNN's plan for it.
  size_t scratch(const AttentionShape& s, DType dtype, bool backward) const;
  void forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch);
  void backward(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch);

  std::string describe() const;  // "cuDNN 9.19.0", "own kernels (without cuDNN: ...)"
  // Who computes a shape: "cuDNN", "own: what cuDNN said".
  std::string describe(const AttentionShape& s, DType dtype, bool backward) const;

 private:
  bool by_cudnn(const AttentionShape& s, DType dtype, bool backward) const;

  cudaStream_t stream_;
  std::unique_ptr<CudnnAttention> cudnn_;  // null when not to be used
};

}  // namespace hlat
