#include "nn/norm.h"

namespace hlat {

void Norm::forward(Ctx& ctx, Tensor x, Tensor y, Tensor rstd, const StorePlace& place) const {
  const Tensor w = ctx.params.weight(weight);
  if (ctx.precision().norm == DType::bf16) return ctx.ops.narrow_rmsnorm(y, rstd, x, w, ctx.norm_eps);
  const Scope scope(ctx.temp());
  const Tensor out = ctx.wide(y);
  ctx.ops.rmsnorm(out, rstd, ctx.widened(x), ctx.widened(w), ctx.norm_eps);
  ctx.store(y, out, place);
}

void Norm::forward(Ctx& ctx, Tensor x, const OperandPlace& y, Tensor rstd, const StorePlace& place) const {
  if (y.fp8()) return ctx.ops.rmsnorm_fp8(y.store, y.operand.wide, rstd, x, ctx.params.weight(weight), ctx.norm_eps);
  forward(ctx, x, y.operand.wide, rstd, place);
}

void Norm::backward(Ctx& ctx, Tensor x, Tensor rstd, Tensor dy, Tensor dx, bool add_dx, bool accumulate, const StorePlace& place) const {
  const Scope scope(ctx.temp());
  const Tensor w = ctx.params.weight(weight);
  const Ctx::GradientPlace grad = ctx.gradient(weight, accumulate);
  const Ops::NormBwdArgs args{.add_dx = add_dx, .accumulate_dw = grad.adds};
  if (ctx.precision().norm == DType::bf16) {
    ctx.ops.narrow_rmsnorm_bwd(dx, grad.tensor, dy, x, w, rstd, args);
  } else {
    const Tensor out = add_dx ? ctx.widened(dx) : ctx.wide(dx);
    ctx.ops.rmsnorm_bwd(out, grad.tensor, ctx.widened(dy), ctx.widened(x), ctx.widened(w), rstd, args);
    ctx.store(dx, out, place);
  }
  ctx.add_gradient(weight, grad, accumulate, place.row);
}

}  // namespace hlat
