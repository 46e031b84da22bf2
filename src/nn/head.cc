#include "nn/head.h"

#include <algorithm>

namespace hlat {

void Head::declare(ParamBuilder& params, const ModelConfig& model, const TrainConfig& train, bool decay_norms, ParamId embedding) {
  vocab = model.vocab;
  chunk = train.loss_chunk;
  norm.declare(params, "head.norm", model.hidden, decay_norms);
  if (model.tied)
    output.weight = embedding;
  else
    output.declare(params, "head.output", model.vocab, model.hidden, model.init_std);
}

Head::Chunk Head::forward_chunk(Ctx& ctx, Tensor x, Tensor targets, Tensor loss_sum) const {
  const int64_t n = x.dim(0);
  Chunk c;
  c.x = x;
  c.targets = targets;
  c.normed = ctx.temp(x.shape, "head norm");
  c.rstd = ctx.temp().alloc(ctx.stat(), {n}, "head rstd");
  c.logits = ctx.temp({n, vocab}, "logits");
  c.stats = ctx.temp().alloc(ctx.stat(), {n, 3}, "loss statistics");
  norm.forward(ctx, x, c.normed, c.rstd);
  output.forward(ctx, c.normed, c.logits);
  ctx.ops.cross_entropy_partial(c.stats, c.logits, targets, 0);
  ctx.ops.cross_entropy_finish(loss_sum, c.stats, targets);
  return c;
}

void Head::loss_and_gradient(Ctx& ctx, Tensor x, Tensor targets, Tensor loss_sum, double scale) const {
  const bool accumulated = ctx.accumulate;
  for (int64_t begin = 0; begin < x.dim(0); begin += chunk) {
    const int64_t end = std::min(begin + chunk, x.dim(0));
    const Scope scope(ctx.temp());
    const Chunk c = forward_chunk(ctx, x.rows(begin, end), targets.rows(begin, end), loss_sum);
    ctx.ops.cross_entropy_bwd(c.logits, c.logits, c.stats, c.targets, 0, scale);
    ctx.accumulate = accumulated || begin > 0;
    output.backward_weight(ctx, c.normed, c.logits);
    output.backward_input(ctx, c.logits, c.normed);  // the normed rows are no longer needed
    norm.backward(ctx, c.x, c.rstd, c.normed, c.normed, false, ctx.accumulate);
    ctx.ops.cast(c.x, c.normed);
  }
  ctx.accumulate = accumulated;
}

void Head::logits(Ctx& ctx, Tensor x, Tensor out) const {
  const Scope scope(ctx.temp());
  const Tensor normed = ctx.temp(x.shape, "head norm");
  const Tensor rstd = ctx.temp().alloc(ctx.stat(), {x.dim(0)}, "head rstd");
  norm.forward(ctx, x, normed, rstd);
  output.forward(ctx, normed, out);
}

}  // namespace hlat
