#include "nn/head.h"

#include <algorithm>

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

void watch_losses(Ctx& ctx, int64_t token, const Tensor& stats, const Tensor& targets) {
  if (ctx.watch == nullptr || !ctx.watch->losses.defined()) return;
  ctx.ops.add_losses(ctx.watch->losses, stats, targets, ctx.watch->groups, token, ctx.attention.seq);
}

}  // namespace

// Adds the losses; what it returns lies in temporary memory of the caller's scope.
Head::Scores Head::chunk_scores(Ctx& ctx, int64_t token, Tensor normed, Tensor targets, Tensor loss_sum) const {
  const Scores s = make_scores(ctx, normed.dim(0));
  output.forward(ctx, normed, s.logits);
  statistics(ctx, s.stats, s.logits, targets);
  ctx.ops.cross_entropy_finish(loss_sum, s.stats, targets);
  watch_losses(ctx, token, s.stats, targets);
  return s;
}

void Head::statistics(Ctx& ctx, Tensor stats, Tensor logits, Tensor targets) const {
  const int64_t n = logits.dim(0), parts = ctx.tp.comm().size();
  ctx.ops.cross_entropy_partial(stats, logits, targets, first);
  if (parts == 1) return;
  const Scope scope(ctx.temp());
  const Tensor all = ctx.temp().alloc(ctx.stat(), {parts * n, 3}, "loss statistics of all ranks");
  ctx.tp.comm().all_gather(all, stats);
  ctx.ops.cross_entropy_merge(stats, all.viewed({parts, n, 3}));
}

// The logits become their gradient.
Tensor Head::chunk_gradient(Ctx& ctx, int64_t token, Tensor normed, Tensor targets, Tensor loss_sum, double scale) const {
  if (ctx.tp.comm().size() > 1) {
    const Scores s = chunk_scores(ctx, token, normed, targets, loss_sum);
    ctx.ops.cross_entropy_bwd(s.logits, s.logits, s.stats, targets, first, scale);
    return s.logits;
  }
  const Scores s = make_scores(ctx, normed.dim(0));
  output.forward(ctx, normed, s.logits);
  ctx.ops.cross_entropy_whole(loss_sum, s.logits, s.stats, targets, scale);
  watch_losses(ctx, token, s.stats, targets);
  return s.logits;
}

Head::Scores Head::make_scores(Ctx& ctx, int64_t n) const {
  return {ctx.temp({n, vocab}, "logits"), ctx.temp().alloc(ctx.stat(), {n, 3}, "loss statistics")};
}

// On return normed holds its gradient: this rank's share of it, from its part of the vocabulary.
void Head::chunk_loss(Ctx& ctx, int64_t token, Tensor normed, Tensor targets, Tensor loss_sum, double scale) const {
  const Scope scope(ctx.temp());
  const Tensor dlogits = chunk_gradient(ctx, token, normed, targets, loss_sum, scale);
  output.backward_weight(ctx, normed, dlogits);
  output.backward_input(ctx, dlogits, normed);
}

void Head::loss_and_gradient(Ctx& ctx, Tensor x, Tensor targets, Tensor loss_sum, double scale) const {
  const Scope scope(ctx.temp());
  const Tensor normed = ctx.temp(x.shape, "head norm");
  const Tensor rstd = ctx.temp().alloc(ctx.stat(), {x.dim(0)}, "head rstd");
  norm.forward(ctx, x, normed, rstd);
  const bool accumulated = ctx.accumulate;
  {
    const Scope inner(ctx.temp());
    const Tensor full = ctx.enter(normed);
    for (int64_t begin = 0; begin < full.dim(0); begin += chunk) {
      const int64_t end = std::min(begin + chunk, full.dim(0));
      ctx.accumulate = accumulated || begin > 0;
      chunk_loss(ctx, begin, full.rows(begin, end), targets.rows(begin, end), loss_sum, scale);
    }
    ctx.tp.leave(normed, full);
  }
  ctx.accumulate = accumulated;
  norm.backward(ctx, x, rstd, normed, normed, false, accumulated);
  ctx.ops.cast(x, normed);
}

Tensor Head::normalized(Ctx& ctx, Tensor x) const {
  const Tensor normed = ctx.temp(x.shape, "head norm");
  const Tensor rstd = ctx.temp().alloc(ctx.stat(), {x.dim(0)}, "head rstd");
  norm.forward(ctx, x, normed, rstd);
  return ctx.enter(normed);
}

void Head::loss(Ctx& ctx, Tensor x, Tensor targets, Tensor loss_sum) const {
  const Scope scope(ctx.temp());
  const Tensor full = normalized(ctx, x);
  for (int64_t begin = 0; begin < full.dim(0); begin += chunk) {
    const Scope inner(ctx.temp());
    const int64_t end = std::min(begin + chunk, full.dim(0));
    chunk_scores(ctx, begin, full.rows(begin, end), targets.rows(begin, end), loss_sum);
  }
}

Tensor Head::logits(Ctx& ctx, Tensor normed) const {
  const Tensor own = ctx.temp({normed.dim(0), vocab}, "logits");
  output.forward(ctx, normed, own);
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
    norm.forward(ctx, rows, normed, ctx.temp().alloc(ctx.stat(), {n}, "head rstd"));
    use(begin, logits(ctx, normed));
  }
}

}  // namespace hlat
