// y = x W^T with W (out, in). Backward: dx = dy W, dW += dy^T x.
#pragma once

#include "nn/ctx.h"

namespace hlat {

struct Linear {
  ParamId weight = -1;  // (out, in)

  void declare(ParamBuilder& params, const std::string& name, int64_t out, int64_t in, double std) {
    weight = params.add({.name = name, .shape = {out, in}, .init_std = std, .decay = true});
  }
  void forward(Ctx& ctx, Tensor x, Tensor y) const { ctx.ops.matmul(y, x, ctx.params.weight(weight), {.trans_b = true}); }
  void backward_input(Ctx& ctx, Tensor dy, Tensor dx) const { ctx.ops.matmul(dx, dy, ctx.params.weight(weight), {}); }
  void backward_weight(Ctx& ctx, Tensor x, Tensor dy) const {
    ctx.ops.matmul(ctx.params.grad(weight), dy, x, {.trans_a = true, .accumulate = ctx.accumulate});
  }
};

}  // namespace hlat
