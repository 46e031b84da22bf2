// Self-attention: qkv = x Wqkv^T (one coalesced projection), RoPE on q and k, causal attention, y = a Wo^T.
// In a pass with a cache of keys and values (nn/kv_cache.h) queries attend to what is there, and nothing is saved for a backward.
// Saved: qkv after RoPE (op qkv), the attention output and its log-sum-exp (op attention).
// Split over tp by heads: H and K count this rank's. When tp exceeds the kv heads, several ranks hold the same ones (nn/holder_sum.h).
#pragma once

#include "config/config.h"
#include "nn/linear.h"

namespace hlat {

struct Attention {
  Linear qkv;     // ((H + 2K) E, D), rows [q heads | k heads | v heads]; column-split
  Linear output;  // (D, H E), row-split

  void declare(ParamBuilder& params, const std::string& prefix, const ModelConfig& model);
  // y may be undefined: then only the saved outputs are brought up to date.
  void forward(Ctx& ctx, const Operand& x /*(rows, D)*/, Tensor y /*(rows, D)*/) const;
  // x as the tape has it.
  void backward(Ctx& ctx, Tensor x, Tensor dy, Tensor dx) const;

 private:
  void attend(Ctx& ctx, Tensor packed /*(N, (H+2K)E)*/, Tensor out /*(N, H*E)*/, Tensor lse /*(B, H, T)*/) const;
  static void watch_scores(Ctx& ctx, Tensor packed /*(N, (H+2K)E)*/, Tensor lse);
  static void attend_cached(Ctx& ctx, Tensor packed /*(N, (H+2K)E)*/, Tensor out /*(N, H*E)*/);
};

}  // namespace hlat
