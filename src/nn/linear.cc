#include "nn/linear.h"

#include "nn/tp_sum.h"
#include "tensor/columns.h"

namespace hlat {

void Linear::forward(Ctx& ctx, Tensor x, Tensor y, const StorePlace& place) const {
  const Scope scope(ctx.temp());
  const Tensor out = ctx.wide(y);
  product(ctx, x, out);
  ctx.store(y, out, place);
}

void Linear::backward_input(Ctx& ctx, Tensor dy, Tensor dx, const StorePlace& place) const {
  const Scope scope(ctx.temp());
  const Tensor out = ctx.wide(dx);
  ctx.ops.matmul(out, dy, ctx.params.weight(weight), {});
  ctx.store(dx, out, place);
}

void Linear::product_columns(Ctx& ctx, Tensor x, Tensor y) const {
  if (coalesced) return product(ctx, ctx.enter(x), y);
  for (const SlicePart& p : matrices(ctx)) {
    const Scope scope(ctx.temp());
    ctx.ops.matmul(columns(y, p.local, p.local + p.count), ctx.enter(x), ctx.params.weight(weight).rows(p.local, p.local + p.count),
                   {.trans_b = true});
  }
}

void Linear::forward_sum(Ctx& ctx, Tensor x, Tensor y, std::string_view name) const {
  const Scope scope(ctx.temp());
  TpSum sum(ctx, y);
  product(ctx, x, sum.partial());
  sum.finish(ctx.residual(name));
}

void Linear::forward_add(Ctx& ctx, Tensor x, Tensor residual, Tensor y, std::string_view name) const {
  if (ctx.tp.comm().size() == 1 && !ctx.rounds()) return ctx.ops.matmul_add(y, x, ctx.params.weight(weight), residual, {.trans_b = true});
  forward_sum(ctx, x, y, name);
  const Scope scope(ctx.temp());
  const Tensor out = ctx.wide(y);
  ctx.ops.add(out, ctx.widened(residual), ctx.widened(y));
  ctx.store(y, out, ctx.residual(fmt::format("{} sum", name)));
}

void Linear::backward_column_split(Ctx& ctx, Tensor x, Tensor dy, Tensor dx, std::string_view name) const {
  if (!coalesced) return backward_columns(ctx, x, dy, dx, name);
  {
    const Scope scope(ctx.temp());
    backward_weight(ctx, ctx.enter(x), dy);
  }
  const Scope scope(ctx.temp());
  TpSum sum(ctx, dx);
  ctx.ops.matmul(sum.partial(), dy, ctx.params.weight(weight), {});
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

void Linear::backward_weight(Ctx& ctx, Tensor x, Tensor dy, int64_t row) const {
  const Scope scope(ctx.temp());
  const Ctx::GradientPlace grad = ctx.gradient(weight, ctx.accumulate);
  ctx.ops.matmul(grad.tensor, dy, x, {.trans_a = true, .accumulate = grad.adds});
  ctx.add_gradient(weight, grad, ctx.accumulate, row);
}

}  // namespace hlat
