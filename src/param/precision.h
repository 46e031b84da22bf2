// The precision policies as data: what is stored in which type.
#pragma once

#include "config/policy.h"
#include "tensor/dtype.h"

namespace hlat {

// Sums inside an op are always f32 or better.
struct Precision {
  DType compute = DType::f32;  // activations
  DType weight = DType::f32;
  bool master = false;  // an f32 copy of the weights lives with the optimizer
  DType moment = DType::f32;
  DType grad = DType::f32;  // accumulation over micro-batches, and its reduction over ranks
  bool stochastic = false;  // rounding of weight and moment stores
};

Precision precision_of(PrecisionKind k);

}  // namespace hlat
