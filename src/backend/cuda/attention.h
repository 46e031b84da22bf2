// Attention. A plain kernel stands in until the fast ones are part of the tree.
#pragma once

#include <cuda_runtime_api.h>

#include "ops/ops.h"

namespace hlat {

class CudaAttention {
 public:
  explicit CudaAttention(cudaStream_t stream);
  ~CudaAttention();
  size_t scratch(const AttentionShape& s, DType dtype, bool backward) const;
  void forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch);
  void backward(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor scratch);

 private:
  cudaStream_t stream_;
};

}  // namespace hlat
