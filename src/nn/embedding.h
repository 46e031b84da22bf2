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
  void forward(Ctx& ctx, Tensor ids /*(N)*/, Tensor x) const {
    const Scope scope(ctx.temp());
    const Tensor partial = ctx.partial(x);
    ctx.ops.embed(partial, ids, ctx.params.weight(table), first);
    ctx.tp.leave(x, partial);
  }
  // `started`: the gradient already holds this step's sums (earlier micro-batches, or the tied head).
  void backward(Ctx& ctx, Tensor ids, Tensor dx, bool started) const {
    if (!started) ctx.ops.fill(ctx.params.grad(table), 0);
    const Scope scope(ctx.temp());
    ctx.ops.embed_bwd(ctx.params.grad(table), ids, ctx.enter(dx), first);
  }
};

}  // namespace hlat
