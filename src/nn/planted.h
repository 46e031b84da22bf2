// What planted faults put in place of parts of a forward or backward pass (fault/model_faults.h). A run without faults has none.
#pragma once

#include "ops/ops.h"

namespace hlat {

// As Ops::attention and Ops::attention_bwd without RoPE.
class PlantedAttention {
 public:
  virtual ~PlantedAttention() = default;
  virtual void forward(Tensor out /*(N, H*E)*/, Tensor lse /*(B, H, T)*/, Tensor qkv /*(N, (H+2K)E)*/, const AttentionShape& s) const = 0;
  virtual void backward(Tensor dqkv /*(N, (H+2K)E)*/, Tensor dout /*(N, H*E)*/, Tensor qkv, const AttentionShape& s) const = 0;
};

// Asked in every pass; layers are those of the whole model.
class PlantedPasses {
 public:
  virtual ~PlantedPasses() = default;
  virtual const PlantedAttention* attention(int64_t /*layer*/) const { return nullptr; }  // null: the block's own
  virtual double recomputed_eps(int64_t /*layer*/, double eps) const { return eps; }      // of norms, when a block is computed again
  virtual void scale_logits(Tensor /*(N, D)*/) const {}  // what the output layer gets, and afterwards the gradient of that
};

}  // namespace hlat
