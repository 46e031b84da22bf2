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
  const int64_t n = x.dim(0);
  const OperandPlace n1 = attention.qkv.input_place(ctx, BlockOp::norm1, n, ctx.tape.computes(BlockOp::qkv));
  const TapeOutput r1 = ctx.tape.output(BlockOp::norm1, 1, ctx.stat(), {n});
  if (n1.stale) norm1.forward(ctx, x, n1, r1.tensor, ctx.residual("norm1"));

  const TapeOutput mid = ctx.tape.output(BlockOp::mid, 0, ctx.act(), x.shape);
  attention.forward(ctx, n1.operand, mid.stale ? mid.tensor : Tensor{});
  const OperandPlace n2 = mlp.gate_up.input_place(ctx, BlockOp::norm2, n, ctx.tape.computes(BlockOp::gate_up));
  const TapeOutput r2 = ctx.tape.output(BlockOp::norm2, 1, ctx.stat(), {n});
  const bool fused = mid.stale && !ctx.rounds() && ctx.precision().norm != DType::bf16;
  if (fused) {
    add_norm(ctx, x, mid.tensor, n2, r2.tensor);
  } else {
    if (mid.stale) add_residual(ctx, x, mid.tensor);
    if (n2.stale) norm2.forward(ctx, mid.tensor, n2, r2.tensor, ctx.residual("norm2"));
  }

  mlp.forward(ctx, n2.operand, mid.tensor, y);
}

// mid = x + mid, and its norm.
void Block::add_norm(Ctx& ctx, Tensor x, Tensor mid, const OperandPlace& y, Tensor rstd) const {
  const Tensor w = ctx.params.weight(norm2.weight);
  if (y.fp8()) return ctx.ops.add_rmsnorm_fp8(y.store, mid, y.operand.wide, rstd, x, mid, w, ctx.norm_eps);
  ctx.ops.add_rmsnorm(mid, y.operand.wide, rstd, x, mid, w, ctx.norm_eps);
}

// mid = x + mid.
void Block::add_residual(Ctx& ctx, Tensor x, Tensor mid) {
  const Scope scope(ctx.temp());
  const Tensor out = ctx.wide(mid);
  ctx.ops.add(out, ctx.widened(x), ctx.widened(mid));
  ctx.store(mid, out, ctx.residual("mid"));
}

void Block::recompute(Ctx& ctx, Tensor x) const {
  const double eps = ctx.norm_eps;
  if (ctx.planted != nullptr) ctx.norm_eps = ctx.planted->recomputed_eps(ctx.layer, eps);
  forward(ctx, x, Tensor{});
  ctx.norm_eps = eps;
}

void Block::backward(Ctx& ctx, Tensor x, Tensor d) const {
  const Scope scope(ctx.temp());
  recompute(ctx, x);
  const Tensor dn = ctx.temp(x.shape, "dnorm");
  mlp.backward(ctx, ctx.tape.at(BlockOp::norm2), d, dn);
  norm2.backward(ctx, ctx.tape.at(BlockOp::mid), ctx.tape.at(BlockOp::norm2, 1), dn, d, true, ctx.accumulate, ctx.residual("dnorm2"));
  attention.backward(ctx, ctx.tape.at(BlockOp::norm1), d, dn);
  norm1.backward(ctx, x, ctx.tape.at(BlockOp::norm1, 1), dn, d, true, ctx.accumulate, ctx.residual("dnorm1"));
}

}  // namespace hlat
