// Causal attention whose softmax is computed in bf16, in plain products: for each sequence and head the scores q k^T, their softmax, and
// its product with v, with one (T, T) matrix of each in temporary memory. The backward computes the scores again.
#pragma once

#include "nn/ctx.h"

namespace hlat {

// out is of the type of qkv or f32.
void narrow_attention(Ctx& ctx, Tensor out /*(N, H*E)*/, Tensor lse /*(B, H, T)*/, Tensor qkv /*(N, (H+2K)E)*/);
// With the inverse of RoPE on q and k.
void narrow_attention_bwd(Ctx& ctx, Tensor dqkv /*(N, (H+2K)E)*/, Tensor dout /*(N, H*E)*/, Tensor qkv);

}  // namespace hlat
