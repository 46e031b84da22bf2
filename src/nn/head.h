// Output head and loss: n = norm(x), logits = n W^T, loss = mean cross-entropy. Works on chunks of tokens, so that
// only `chunk` rows of logits exist at a time; each chunk runs forward and backward in one go, and nothing is saved.
#pragma once

#include "config/config.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace hlat {

struct Head {
  Norm norm;
  Linear output;  // (V, D), or the embedding table when tied
  int64_t vocab = 0;
  int64_t chunk = 0;

  void declare(ParamBuilder& params, const ModelConfig& model, const TrainConfig& train, bool decay_norms, ParamId embedding);

  // loss_sum += sum of the token losses, and in place of x its gradient, in which token losses are weighted with `scale`.
  void loss_and_gradient(Ctx& ctx, Tensor x, Tensor targets, Tensor loss_sum, double scale) const;
  // Logits of the given rows, for generation.
  void logits(Ctx& ctx, Tensor x /*(n, D)*/, Tensor out /*(n, V)*/) const;

 private:
  struct Chunk {
    Tensor x, normed, rstd, logits, stats, targets;
  };
  Chunk forward_chunk(Ctx& ctx, Tensor x, Tensor targets, Tensor loss_sum) const;
};

}  // namespace hlat
