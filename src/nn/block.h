// One transformer block: mid = x + attention(norm1(x)), y = mid + mlp(norm2(mid)).
// Saved by policy: norm outputs with their rstd, qkv, attention, mid, gate_up, swiglu. The block input x is kept by the model.
#pragma once

#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"

namespace hlat {

struct Block {
  Norm norm1, norm2;
  Attention attention;
  Mlp mlp;

  void declare(ParamBuilder& params, int64_t layer, const ModelConfig& model, bool decay_norms);
  // When it recomputes, y is undefined: the block stops when everything the backward needs is there.
  void forward(Ctx& ctx, Tensor x /*(rows, D)*/, Tensor y /*(rows, D)*/) const;
  // dx = dL/dx given d = dL/dy, in place: d holds dy on entry and dx on return.
  void backward(Ctx& ctx, Tensor x, Tensor d) const;

 private:
  void recompute(Ctx& ctx, Tensor x) const;
  void add_norm(Ctx& ctx, Tensor x, Tensor mid, const OperandPlace& y, Tensor rstd) const;
  static void add_residual(Ctx& ctx, Tensor x, Tensor mid);
};

}  // namespace hlat
