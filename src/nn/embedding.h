// Token embedding: x[n] = table[ids[n]].
#pragma once

#include "config/config.h"
#include "nn/ctx.h"

namespace hlat {

struct Embedding {
  ParamId table = -1;  // (V, D)

  void declare(ParamBuilder& params, const ModelConfig& model) {
    table = params.add({.name = "embedding", .shape = {model.vocab, model.hidden}, .init_std = model.init_std, .decay = true});
  }
  void forward(Ctx& ctx, Tensor ids, Tensor x) const { ctx.ops.embed(x, ids, ctx.params.weight(table)); }
  // `started`: the gradient already holds this step's sums (earlier micro-batches, or the tied head).
  void backward(Ctx& ctx, Tensor ids, Tensor dx, bool started) const {
    if (!started) ctx.ops.fill(ctx.params.grad(table), 0);
    ctx.ops.embed_bwd(ctx.params.grad(table), ids, dx);
  }
};

}  // namespace hlat
