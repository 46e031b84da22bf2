// Output head and loss: n = norm(x), logits = n W^T, loss = mean cross-entropy. Works on chunks of tokens, so that
// only `chunk` rows of logits exist at a time; each chunk runs forward and backward in one go, and nothing is saved.
// The vocabulary is split over tp: for the loss ranks exchange three numbers per token, never logits.
#pragma once

#include "config/config.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace hlat {

struct Head {
  Norm norm;
  Linear output;      // (V / tp, D), or the embedding table when tied
  int64_t vocab = 0;  // V / tp
  int64_t first = 0;  // vocabulary index of row 0
  int64_t chunk = 0;

  // `tied` is the embedding table on this rank, or -1.
  void declare(ParamBuilder& params, const ModelConfig& model, const TrainConfig& train, bool decay_norms, ParamId tied);

  // loss_sum += sum of the token losses, and in place of x its gradient, in which token losses are weighted with `scale`.
  void loss_and_gradient(Ctx& ctx, Tensor x /*(rows, D)*/, Tensor targets /*(N)*/, Tensor loss_sum, double scale) const;
  // loss_sum += sum of the token losses.
  void loss(Ctx& ctx, Tensor x /*(rows, D)*/, Tensor targets /*(N)*/, Tensor loss_sum) const;
  // What the output layer gets: norm(x) of all tokens, in temporary memory of the caller's scope, as are the logits below.
  Tensor normalized(Ctx& ctx, Tensor x /*(rows, D)*/) const;
  // Logits (n, V / tp) of tokens.
  Tensor logits(Ctx& ctx, Tensor normed /*(n, D)*/) const;
  // What may follow single tokens, by their rows: `use` gets the logits of `chunk` of them at a time, with the number of the first.
  using UseLogits = std::function<void(int64_t first, Tensor logits /*(n, V / tp)*/)>;
  void each_logits(Ctx& ctx, Tensor x /*(rows, D)*/, Tensor asked /*(R) i32*/, const UseLogits& use) const;
  // Those of cross_entropy_partial, over the vocabulary of all ranks.
  void statistics(Ctx& ctx, Tensor stats /*(n, 3)*/, Tensor logits /*(n, V / tp)*/, Tensor targets /*(n)*/) const;

 private:
  struct Scores {
    Tensor logits;  // (n, V / tp)
    Tensor stats;   // (n, 3), of all ranks
  };
  Scores make_scores(Ctx& ctx, int64_t n) const;
  // Of the tokens from `token` on.
  Scores chunk_scores(Ctx& ctx, int64_t token, Tensor normed, Tensor targets, Tensor loss_sum) const;
  Tensor chunk_gradient(Ctx& ctx, int64_t token, Tensor normed, Tensor targets, Tensor loss_sum, double scale) const;
  void chunk_loss(Ctx& ctx, int64_t token, Tensor normed, Tensor targets, Tensor loss_sum, double scale) const;
};

}  // namespace hlat
