#include "nn/linear.h"

#include "nn/tp_sum.h"
#include "tensor/columns.h"

namespace hlat {

void Linear::product(Ctx& ctx, const Operand& x, Tensor y) const {
  if (fp8(ctx))
    return ctx.ops.matmul_fp8(y, scaled(ctx, x.rows, Fp8Role::input), scaled(ctx, ctx.params.weight(weight), Fp8Role::weight), {},
                              {.fast_sums = true});
  ctx.ops.matmul(y, x.wide, ctx.params.wide(weight), {.trans_b = true});
}

void Linear::input_product(Ctx& ctx, const Operand& dy, Tensor dx) const {
  if (fp8(ctx))
    return ctx.ops.matmul_fp8(dx, scaled(ctx, dy.rows, Fp8Role::gradient), scaled(ctx, ctx.params.transposed(weight), Fp8Role::weight), {},
                              {});
  ctx.ops.matmul(dx, dy.wide, ctx.params.weight(weight), {});
}

void Linear::weight_product(Ctx& ctx, Tensor grad, const Operand& x, const Operand& dy, bool adds) const {
  if (fp8(ctx) && ctx.precision().fp8_weight_grads)
    return ctx.ops.matmul_fp8(grad, scaled(ctx, dy.columns, Fp8Role::gradient), scaled(ctx, x.columns, Fp8Role::input), {},
                              {.accumulate = adds});
  ctx.ops.matmul(grad, dy.wide, x.wide, {.trans_a = true, .accumulate = adds});
}

void Linear::forward(Ctx& ctx, Tensor x, Tensor y, const StorePlace& place) const {
  const Scope scope(ctx.temp());
  const Tensor out = ctx.wide(y);
  product(ctx, x, out);
  ctx.store(y, out, place);
}

void Linear::backward_input(Ctx& ctx, const Operand& dy, Tensor dx, const StorePlace& place) const {
  const Scope scope(ctx.temp());
  const Tensor out = ctx.wide(dx);
  input_product(ctx, dy, out);
  ctx.store(dx, out, place);
}

void Linear::product_columns(Ctx& ctx, const Operand& x, Tensor y) const {
  if (fp8(ctx)) return product(ctx, {{}, ctx.enter(x.rows), {}}, y);
  if (coalesced) return product(ctx, ctx.enter(x.wide), y);
  for (const SlicePart& p : matrices(ctx)) {
    const Scope scope(ctx.temp());
    ctx.ops.matmul(columns(y, p.local, p.local + p.count), ctx.enter(x.wide), ctx.params.weight(weight).rows(p.local, p.local + p.count),
                   {.trans_b = true});
  }
}

void Linear::forward_sum(Ctx& ctx, const Operand& x, Tensor y, std::string_view name) const {
  const Scope scope(ctx.temp());
  TpSum sum(ctx, y);
  product(ctx, x, sum.partial());
  sum.finish(ctx.residual(name));
}

void Linear::forward_add(Ctx& ctx, const Operand& x, Tensor residual, Tensor y, std::string_view name) const {
  if (ctx.tp.comm().size() == 1 && !ctx.rounds()) {
    if (fp8(ctx))
      return ctx.ops.matmul_fp8(y, scaled(ctx, x.rows, Fp8Role::input), scaled(ctx, ctx.params.weight(weight), Fp8Role::weight), residual,
                                {.fast_sums = true});
    return ctx.ops.matmul_add(y, x.wide, ctx.params.wide(weight), residual, {.trans_b = true});
  }
  forward_sum(ctx, x, y, name);
  const Scope scope(ctx.temp());
  const Tensor out = ctx.wide(y);
  ctx.ops.add(out, ctx.widened(residual), ctx.widened(y));
  ctx.store(y, out, ctx.residual(fmt::format("{} sum", name)));
}

void Linear::backward_column_split(Ctx& ctx, const Operand& x, const Operand& dy, Tensor dx, std::string_view name) const {
  if (!coalesced) return backward_columns(ctx, x.wide, dy.wide, dx, name);
  {
    const Scope scope(ctx.temp());
    backward_weight(ctx, gathered(ctx, x), dy);
  }
  const Scope scope(ctx.temp());
  TpSum sum(ctx, dx);
  input_product(ctx, dy, sum.partial());
  sum.finish(ctx.residual(name));
}

// The gradients of the input add up matrix by matrix.
void Linear::backward_columns(Ctx& ctx, Tensor x, Tensor dy, Tensor dx, std::string_view name) const {
  {
    const Scope scope(ctx.temp());
    const Ctx::GradientPlace grad = ctx.gradient(weight, ctx.accumulate);
    for (const SlicePart& p : matrices(ctx)) {
      const Scope inner(ctx.temp());
      ctx.ops.matmul(grad.tensor.rows(p.local, p.local + p.count), columns(dy, p.local, p.local + p.count), ctx.enter(x),
                     {.trans_a = true, .accumulate = grad.adds});
    }
    ctx.add_gradient(weight, grad, ctx.accumulate);
  }
  bool first = true;
  for (const SlicePart& p : matrices(ctx)) {
    const Scope scope(ctx.temp());
    const Tensor part = first ? dx : ctx.temp(dx.shape, "input gradient of one matrix");
    TpSum sum(ctx, part);
    ctx.ops.matmul(sum.partial(), columns(dy, p.local, p.local + p.count), ctx.params.weight(weight).rows(p.local, p.local + p.count), {});
    const std::string own = fmt::format("{} {}", name, p.local);
    sum.finish(ctx.residual(own));
    if (!first) {
      const Tensor out = ctx.wide(dx);
      ctx.ops.add(out, ctx.widened(dx), ctx.widened(part));
      ctx.store(dx, out, ctx.residual(own + " sum"));
    }
    first = false;
  }
}

void Linear::backward_weight(Ctx& ctx, const Operand& x, const Operand& dy, int64_t row) const {
  const Scope scope(ctx.temp());
  const Ctx::GradientPlace grad = ctx.gradient(weight, ctx.accumulate);
  weight_product(ctx, grad.tensor, x, dy, grad.adds);
  ctx.add_gradient(weight, grad, ctx.accumulate, row);
}

}  // namespace hlat
