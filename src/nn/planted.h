// An attention that a planted fault computes in place of the model's own (fault/leaky_attention.h). A run without faults has none.
#pragma once

#include "ops/ops.h"

namespace hlat {

class PlantedAttention {
 public:
  virtual ~PlantedAttention() = default;
  virtual bool meets(int64_t layer) const = 0;  // now, in this block of the whole model
  // As Ops::attention and Ops::attention_bwd without RoPE.
  virtual void forward(Tensor out /*(N, H*E)*/, Tensor lse /*(B, H, T)*/, Tensor qkv /*(N, (H+2K)E)*/, const AttentionShape& s) const = 0;
  virtual void backward(Tensor dqkv /*(N, (H+2K)E)*/, Tensor dout /*(N, H*E)*/, Tensor qkv, const AttentionShape& s) const = 0;
};

}  // namespace hlat
