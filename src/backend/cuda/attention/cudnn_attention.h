// Attention through cuDNN's flash attention (version 9), for bf16. libcudnn is loaded when the first object is made, so the program
// starts without it. Shapes cuDNN refuses have no scratch size (nullopt); the caller has a kernel of its own for them.
//
// A plan per (shape, direction) is built when its scratch size is asked for, and kept: of the engines cuDNN proposes the one that is
// preferred, else the first that can be built. The deterministic backward of cuDNN before 9.25
// keeps the gradients of all scores, B H T T bf16, in scratch: a large batch is worked through in equal parts to bound that.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/ops.h"

namespace hlat {

class CudnnAttention {
 public:
  CudnnAttention(cudaStream_t stream, bool deterministic);
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  bool usable() const { return library_ != nullptr; }
  // "cuDNN 9.19.0", or why it is not used.
  const std::string& describe() const { return describe_; }
  std::optional<size_t> scratch(const AttentionShape& s, DType dtype, bool backward);
  std::string refusal(const AttentionShape& s, bool backward);  // cuDNN's words, empty when it takes the shape

  // For a record of what was chosen. library: cuDNN and its frontend with their versions, empty when it is not used. engine: that which
  // computes a shape, as cuDNN names it with its settings.
  const std::string& library() const { return library_name_; }
  std::string engine(const AttentionShape& s, bool backward);
  // Asked for each plan that is built from now on: the name of the engine to take where cuDNN proposes it; empty: any.
  using Preferred = std::function<std::string(const AttentionShape& s, bool backward)>;
  void prefer(Preferred preferred);

  // Only for shapes that have a scratch size.
  void forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch);
  void backward(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch);

 private:
  struct Library;
  std::unique_ptr<Library> library_;  // null when cuDNN cannot be used
  std::string describe_, library_name_;
};

}  // namespace hlat
