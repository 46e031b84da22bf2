#include "nn/head.h"

#include <algorithm>

#include "nn/tp_sum.h"
#include "param/param_names.h"

namespace hlat {

void Head::declare(ParamBuilder& params, const ModelConfig& model, const TrainConfig& train, bool decay_norms, ParamId tied) {
  const Part rows = params.tp_part(model.vocab);
  vocab = rows.count;
  first = rows.begin;
  chunk = train.loss_chunk;
  norm.declare(params, "head.norm", model.hidden, decay_norms);
  if (tied >= 0)
    output.weight = tied;
  else
    output.declare_columns(params, std::string(kHeadName), model.vocab, model.hidden, {{.global = first, .count = vocab}}, model.init_std);
}

namespace {

void watch_losses(Ctx& ctx, int64_t row, const Tensor& stats, const Tensor& targets) {
  if (ctx.watch == nullptr || !ctx.watch->losses.defined()) return;
  ctx.ops.add_losses(ctx.watch->losses, stats, targets, ctx.watch->groups, row, ctx.attention.seq);
}

void scale_logits(const Ctx& ctx, const Tensor& x) {
  if (ctx.planted != nullptr) ctx.planted->scale_logits(x);
}

}  // namespace

// Adds the losses; what it returns lies in temporary memory of the caller's scope.
Head::Scores Head::chunk_scores(Ctx& ctx, Tensor normed, Tensor targets, Tensor loss_sum, int64_t row) const {
  const Scores s = make_scores(ctx, normed.dim(0));
  output.forward(ctx, normed, s.logits, {.name = "logits", .row = row, .columns = output.outputs(ctx)});
  statistics(ctx, s.stats, s.logits, targets);
  if (ctx.precision().loss == DType::bf16)
    ctx.ops.narrow_cross_entropy_finish(loss_sum, s.stats, targets);
  else
    ctx.ops.cross_entropy_finish(loss_sum, s.stats, targets);
  watch_losses(ctx, row, s.stats, targets);
  return s;
}

void Head::statistics(Ctx& ctx, Tensor stats, Tensor logits, Tensor targets) const {
  const int64_t n = logits.dim(0), parts = ctx.tp.comm().size();
  if (ctx.precision().loss == DType::bf16)
    ctx.ops.narrow_cross_entropy_partial(stats, logits, targets, first);
  else
    ctx.ops.cross_entropy_partial(stats, logits, targets, first);
  if (parts == 1) return;
  const Scope scope(ctx.temp());
  const Tensor all = ctx.temp().alloc(ctx.stat(), {parts * n, 3}, "loss statistics of all ranks");
  ctx.tp.comm().all_gather(all, stats);
  ctx.ops.cross_entropy_merge(stats, all.viewed({parts, n, 3}));
}

// The logits become their gradient.
Tensor Head::chunk_gradient(Ctx& ctx, Tensor normed, Tensor targets, Tensor loss_sum, double scale, int64_t row) const {
  const bool narrow = ctx.precision().loss == DType::bf16;
  if (ctx.tp.comm().size() == 1 && !ctx.rounds() && !narrow) {
    const Scores s = make_scores(ctx, normed.dim(0));
    output.product(ctx, normed, s.logits);
    ctx.ops.cross_entropy_whole(loss_sum, s.logits, s.stats, targets, scale);
    watch_losses(ctx, row, s.stats, targets);
    return s.logits;
  }
  const Scores s = chunk_scores(ctx, normed, targets, loss_sum, row);
  if (narrow) {
    ctx.ops.narrow_cross_entropy_bwd(s.logits, s.logits, s.stats, targets, first, scale);
    return s.logits;
  }
  const Scope scope(ctx.temp());
  const Tensor out = ctx.wide(s.logits);
  ctx.ops.cross_entropy_bwd(out, ctx.widened(s.logits), s.stats, targets, first, scale);
  ctx.store(s.logits, out, {.name = "dlogits", .row = row, .columns = output.outputs(ctx)});
  return s.logits;
}

Head::Scores Head::make_scores(Ctx& ctx, int64_t n) const {
  return {ctx.temp({n, vocab}, "logits"), ctx.temp().alloc(ctx.stat(), {n, 3}, "loss statistics")};
}

// dnormed, which may be normed, becomes the gradient of normed: this rank's share of it, from its part of the vocabulary.
void Head::chunk_loss(Ctx& ctx, Tensor normed, Tensor dnormed, Tensor targets, Tensor loss_sum, double scale, int64_t row) const {
  const Scope scope(ctx.temp());
  const Tensor dlogits = chunk_gradient(ctx, normed, targets, loss_sum, scale, row);
  output.backward_weight(ctx, normed, dlogits, row);
  ctx.ops.matmul(dnormed, dlogits, ctx.params.weight(output.weight), {});
}

void Head::loss_and_gradient(Ctx& ctx, Tensor x, Tensor targets, Tensor loss_sum, double scale) const {
  const Scope scope(ctx.temp());
  const Tensor normed = ctx.temp(x.shape, "head norm");
  const Tensor rstd = ctx.temp().alloc(ctx.stat(), {x.dim(0)}, "head rstd");
  norm.forward(ctx, x, normed, rstd, ctx.residual("head norm"));
  const bool accumulated = ctx.accumulate;
  {
    const Scope inner(ctx.temp());
    const Tensor full = ctx.enter(normed);
    scale_logits(ctx, full);
    TpSum sum(ctx, normed, full);
    for (int64_t begin = 0; begin < full.dim(0); begin += chunk) {
      const int64_t end = std::min(begin + chunk, full.dim(0));
      ctx.accumulate = accumulated || begin > 0;
      chunk_loss(ctx, full.rows(begin, end), sum.partial().rows(begin, end), targets.rows(begin, end), loss_sum, scale, begin);
    }
    sum.finish(ctx.residual("dhead norm"));
  }
  ctx.accumulate = accumulated;
  scale_logits(ctx, normed);
  norm.backward(ctx, x, rstd, normed, normed, false, accumulated, ctx.residual("dhead"));
  ctx.ops.cast(x, normed);
}

Tensor Head::normalized(Ctx& ctx, Tensor x) const {
  const Tensor normed = ctx.temp(x.shape, "head norm");
  const Tensor rstd = ctx.temp().alloc(ctx.stat(), {x.dim(0)}, "head rstd");
  norm.forward(ctx, x, normed, rstd, ctx.residual("head norm"));
  return ctx.enter(normed);
}

void Head::loss(Ctx& ctx, Tensor x, Tensor targets, Tensor loss_sum) const {
  const Scope scope(ctx.temp());
  const Tensor full = normalized(ctx, x);
  scale_logits(ctx, full);
  for (int64_t begin = 0; begin < full.dim(0); begin += chunk) {
    const Scope inner(ctx.temp());
    const int64_t end = std::min(begin + chunk, full.dim(0));
    chunk_scores(ctx, full.rows(begin, end), targets.rows(begin, end), loss_sum, begin);
  }
}

Tensor Head::logits(Ctx& ctx, Tensor normed) const {
  const Tensor own = ctx.temp({normed.dim(0), vocab}, "logits");
  output.product(ctx, normed, own);
  return own;
}

// The look-up of rows is that of an embedding.
void Head::each_logits(Ctx& ctx, Tensor x, Tensor asked, const UseLogits& use) const {
  const Scope scope(ctx.temp());
  const Tensor all = ctx.enter(x);
  for (int64_t begin = 0; begin < asked.dim(0); begin += chunk) {
    const Scope inner(ctx.temp());
    const int64_t n = std::min(chunk, asked.dim(0) - begin);
    const Tensor rows = ctx.temp({n, x.dim(1)}, "asked rows"), normed = ctx.temp({n, x.dim(1)}, "head norm");
    ctx.ops.embed(rows, asked.rows(begin, begin + n), all, 0);
    norm.forward(ctx, rows, normed, ctx.temp().alloc(ctx.stat(), {n}, "head rstd"), ctx.residual("head norm"));
    use(begin, logits(ctx, normed));
  }
}

}  // namespace hlat
