// What a pass measures besides its result, where somebody asks: layers add to these tensors. Those that are undefined are not measured.
#pragma once

#include "tensor/tensor.h"

namespace hlat {

struct Watch {
  // Largest values of this rank's part; start at -infinity.
  Tensor activation;  // (L + 1) f64: absolute, of what a block gets, and last of what the head gets
  Tensor lse;         // (L) f64: log-sum-exp of scaled attention scores
  Tensor score;       // (L) f64: products of the last query of the first sequence with all of its keys, not scaled
  // Losses of tokens (Ops::add_losses).
  Tensor losses;  // (G, P) f64
  Tensor groups;  // (B) i32
};

}  // namespace hlat
