// Token embedding: x[n] = table[ids[n]]. The vocabulary is split over tp: each rank looks up its own tokens, and the sum
// over ranks has them all.
#pragma once

#include "config/config.h"
#include "nn/ctx.h"
#include "param/param_names.h"

namespace hlat {

struct Embedding {
  ParamId table = -1;  // (V / tp, D)
  int64_t first = 0;   // vocabulary index of row 0

  void declare(ParamBuilder& params, const ModelConfig& model) {
    const Part rows = params.tp_part(model.vocab);
    first = rows.begin;
    table = params.add_split(std::string(kEmbeddingName), {model.vocab, model.hidden}, 0, {{.global = rows.begin, .count = rows.count}},
                             model.init_std);
  }
  // Of the terms of a token's sum over ranks all but one are zero: it is exact in any type.
  void forward(Ctx& ctx, Tensor ids /*(N)*/, Tensor x) const {
    const Scope scope(ctx.temp());
    const Tensor partial = ctx.tp.partial(ctx.temp(), x, ctx.tokens());
    ctx.ops.embed(partial, ids, ctx.params.weight(table), first);
    ctx.tp.leave(x, partial);
  }
  // `started`: the gradient already holds this step's sums (earlier micro-batches, or the tied head).
  void backward(Ctx& ctx, Tensor ids, Tensor dx, bool started) const {
    const Scope scope(ctx.temp());
    const Ctx::GradientPlace grad = ctx.gradient(table, started);
    if (!grad.adds) ctx.ops.fill(grad.tensor, 0);
    ctx.ops.embed_bwd(grad.tensor, ids, ctx.enter(dx), first);
    ctx.add_gradient(table, grad, started);
  }
};

}  // namespace hlat
