// y = x W^T with W (out, in). Backward: dx = dy W, dW += dy^T x.
#pragma once

#include "nn/ctx.h"

namespace hlat {

struct Linear {
  ParamId weight = -1;  // (out, in)

  // Column-split: this tp rank has the given parts of the outputs. Row-split: it has a part of the inputs.
  void declare_columns(ParamBuilder& params, const std::string& name, int64_t out, int64_t in, std::vector<SlicePart> rows, double std) {
    weight = params.add_split(name, {out, in}, 0, std::move(rows), std);
  }
  void declare_rows(ParamBuilder& params, const std::string& name, int64_t out, int64_t in, Part columns, double std) {
    weight = params.add_split(name, {out, in}, 1, {{.global = columns.begin, .count = columns.count}}, std);
  }
  void forward(Ctx& ctx, Tensor x, Tensor y) const { ctx.ops.matmul(y, x, ctx.params.weight(weight), {.trans_b = true}); }
  void backward_input(Ctx& ctx, Tensor dy, Tensor dx) const { ctx.ops.matmul(dx, dy, ctx.params.weight(weight), {}); }
  // y = the sum over tp ranks of x W^T, of a row-split weight.
  void forward_sum(Ctx& ctx, Tensor x, Tensor y) const {
    const Scope scope(ctx.temp());
    const Tensor partial = ctx.partial(y);
    forward(ctx, x, partial);
    ctx.tp.leave(y, partial);
  }
  // y = residual + that sum.
  void forward_add(Ctx& ctx, Tensor x, Tensor residual, Tensor y) const {
    if (ctx.tp.comm().size() == 1) return ctx.ops.matmul_add(y, x, ctx.params.weight(weight), residual, {.trans_b = true});
    forward_sum(ctx, x, y);
    ctx.ops.add(y, residual, y);
  }
  // Both gradients of a column-split weight, whose forward entered with x.
  void backward_column_split(Ctx& ctx, Tensor x, Tensor dy, Tensor dx) const {
    {
      const Scope scope(ctx.temp());
      backward_weight(ctx, ctx.enter(x), dy);
    }
    const Scope scope(ctx.temp());
    const Tensor partial = ctx.partial(dx);
    backward_input(ctx, dy, partial);
    ctx.tp.leave(dx, partial);
  }
  void backward_weight(Ctx& ctx, Tensor x, Tensor dy) const {
    ctx.ops.matmul(ctx.params.grad(weight), dy, x, {.trans_a = true, .accumulate = ctx.accumulate});
  }
};

}  // namespace hlat
