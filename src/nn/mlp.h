// SwiGLU feed-forward: [g | u] = x Wgu^T (one coalesced projection), y = residual + (silu(g) * u) Wd^T.
// Saved: [g | u] (op gate_up) and the product (op swiglu). Split over tp by F, which here counts this rank's part.
#pragma once

#include "config/config.h"
#include "nn/linear.h"

namespace hlat {

struct Mlp {
  Linear gate_up;  // (2F, D), rows [gate | up]; column-split
  Linear down;     // (D, F), row-split
  int64_t ffn = 0;

  void declare(ParamBuilder& params, const std::string& prefix, const ModelConfig& model);
  // y and the residual may be undefined: then only the saved outputs are brought up to date.
  void forward(Ctx& ctx, const Operand& x /*(rows, D)*/, Tensor residual /*(rows, D)*/, Tensor y /*(rows, D)*/) const;
  // x as the tape has it.
  void backward(Ctx& ctx, Tensor x, Tensor dy, Tensor dx) const;

 private:
  void swiglu_backward(Ctx& ctx, const OperandPlace& dgu, Tensor dproduct) const;
};

}  // namespace hlat
