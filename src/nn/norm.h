// RMSNorm weight. The arithmetic is in the ops; what is saved is decided by the layer that uses the norm.
#pragma once

#include "nn/ctx.h"
#include "nn/operand.h"

namespace hlat {

struct Norm {
  ParamId weight = -1;  // (D)

  void declare(ParamBuilder& params, const std::string& name, int64_t width, bool decay) {
    weight = params.add_replicated(name, {width}, decay);
  }
  void forward(Ctx& ctx, Tensor x, Tensor y, Tensor rstd, const StorePlace& place) const;
  // To what a linear layer reads.
  void forward(Ctx& ctx, Tensor x, const OperandPlace& y, Tensor rstd, const StorePlace& place) const;
  // dx = or dx += ; dx may alias dy when it does not add.
  void backward(Ctx& ctx, Tensor x, Tensor rstd, Tensor dy, Tensor dx, bool add_dx, bool accumulate, const StorePlace& place) const;
};

}  // namespace hlat
