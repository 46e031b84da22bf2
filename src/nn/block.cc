#include "nn/block.h"

namespace hlat {

void Block::declare(ParamBuilder& params, int64_t layer, const ModelConfig& model, bool decay_norms) {
  const std::string prefix = fmt::format("layers.{}", layer);
  norm1.declare(params, prefix + ".norm1", model.hidden, decay_norms);
  attention.declare(params, prefix + ".attention", model);
  norm2.declare(params, prefix + ".norm2", model.hidden, decay_norms);
  mlp.declare(params, prefix + ".mlp", model);
}

void Block::forward(Ctx& ctx, Tensor x, Tensor y) const {
  const Shape wide = x.shape, rows = {x.dim(0)};
  const TapeOutput n1 = ctx.tape.output(BlockOp::norm1, 0, ctx.act(), wide);
  const TapeOutput r1 = ctx.tape.output(BlockOp::norm1, 1, ctx.stat(), rows);
  if (n1.stale) norm1.forward(ctx, x, n1.tensor, r1.tensor, ctx.residual("norm1"));

  const TapeOutput mid = ctx.tape.output(BlockOp::mid, 0, ctx.act(), wide);
  attention.forward(ctx, n1.tensor, mid.stale ? mid.tensor : Tensor{});
  const TapeOutput n2 = ctx.tape.output(BlockOp::norm2, 0, ctx.act(), wide);
  const TapeOutput r2 = ctx.tape.output(BlockOp::norm2, 1, ctx.stat(), rows);
  const bool fused = mid.stale && !ctx.rounds() && ctx.precision().norm != DType::bf16;
  if (fused) {
    ctx.ops.add_rmsnorm(mid.tensor, n2.tensor, r2.tensor, x, mid.tensor, ctx.params.weight(norm2.weight), ctx.norm_eps);
  } else {
    if (mid.stale) add_residual(ctx, x, mid.tensor);
    if (n2.stale) norm2.forward(ctx, mid.tensor, n2.tensor, r2.tensor, ctx.residual("norm2"));
  }

  mlp.forward(ctx, n2.tensor, mid.tensor, y);
}

// mid = x + mid.
void Block::add_residual(Ctx& ctx, Tensor x, Tensor mid) {
  const Scope scope(ctx.temp());
  const Tensor out = ctx.wide(mid);
  ctx.ops.add(out, ctx.widened(x), ctx.widened(mid));
  ctx.store(mid, out, ctx.residual("mid"));
}

void Block::backward(Ctx& ctx, Tensor x, Tensor d) const {
  const Scope scope(ctx.temp());
  forward(ctx, x, Tensor{});  // recompute
  const Tensor dn = ctx.temp(x.shape, "dnorm");
  mlp.backward(ctx, ctx.tape.at(BlockOp::norm2), d, dn);
  norm2.backward(ctx, ctx.tape.at(BlockOp::mid), ctx.tape.at(BlockOp::norm2, 1), dn, d, true, ctx.accumulate, ctx.residual("dnorm2"));
  attention.backward(ctx, ctx.tape.at(BlockOp::norm1), d, dn);
  norm1.backward(ctx, x, ctx.tape.at(BlockOp::norm1, 1), dn, d, true, ctx.accumulate, ctx.residual("dnorm1"));
}

}  // namespace hlat
