// Gradients of keys and values where several tp ranks, the holders, have the same kv heads. Each computes the terms of its own query heads;
// the gradient that one rank would have is their sum. Gradients of weights and inputs are summed over tp anyway, so terms will do, but not
// for FP8, whose scales are those of the values that one rank would round. There the sum is taken first: every holder goes on with that of
// its share of the tokens and with zeros for the rest, so each value is rounded and counted once, and what is summed later stays what it
// is.
#pragma once

#include "nn/ctx.h"

namespace hlat {

// Collective over the holders; nothing for a group of one. The sum is taken in the type of the policy's sums over tp.
void sum_over_holders(Ctx& ctx, Tensor dqkv /*(N, (H+2K)E)*/);

}  // namespace hlat
