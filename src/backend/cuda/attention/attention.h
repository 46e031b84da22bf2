// Causal attention on CUDA: on Hopper GPUs our backward for head sizes 64 and 128; else cuDNN's where it takes the shape (bf16, head sizes
// it knows), else our plain kernels (choose_attention in ops/gpu_facts.h). All keep the same lse, so one may do the forward and another the
// backward. The backward is deterministic unless asked otherwise.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "backend/cuda/attention/cudnn_attention.h"
#include "ops/gpu_facts.h"

namespace hlat {

class CudaAttention {
 public:
  enum class Use { automatic, library, own };  // library: not the Hopper kernel; own: only the plain kernels
  explicit CudaAttention(cudaStream_t stream, bool deterministic = true, Use use = Use::automatic);
  ~CudaAttention();
  CudaAttention(const CudaAttention&) = delete;
  CudaAttention& operator=(const CudaAttention&) = delete;

  // Exact; the first question about a shape builds cuDNN's plan for it.
  size_t scratch(const AttentionShape& s, DType dtype, bool backward) const;
  void forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch);
  // With rope, where fuses_inverse_rope(): then the inverse RoPE of dq and dk, before they are rounded.
  void backward(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch, Tensor rope = {});
  bool fuses_inverse_rope(const AttentionShape& s, DType dtype) const { return by_hopper(s, dtype); }

  // "cuDNN 9.19.0", "own kernels (without cuDNN: ...)", and a line for each shape that was asked about so far: who computes it.
  std::string describe() const;
  // Who computes a shape: "Hopper", "cuDNN", "own: what cuDNN said".
  std::string describe(const AttentionShape& s, DType dtype, bool backward) const;

 private:
  bool by_hopper(const AttentionShape& s, DType dtype) const;  // the backward
  std::optional<size_t> cudnn_scratch(const AttentionShape& s, DType dtype, bool backward) const;
  AttentionBy chosen(const AttentionShape& s, DType dtype, bool backward) const;

  cudaStream_t stream_;
  Use use_;
  GpuFacts gpu_;
  std::unique_ptr<CudnnAttention> cudnn_;            // null when not to be used
  mutable std::map<std::string, std::string> seen_;  // shapes that scratch was asked for, and who computes them
};

}  // namespace hlat
