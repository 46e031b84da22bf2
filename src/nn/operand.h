// What a product of a linear layer reads, in the forms that it is there in: as activations are, or FP8 (ops/fp8.h), by rows for the
// products that read it along its columns and transposed for the gradient of a weight, which reads it along tokens.
#pragma once

#include "nn/tape.h"
#include "ops/fp8.h"

namespace hlat {

struct Operand {
  Tensor wide = {};     // (N, C)
  Tensor rows = {};     // (N, C) FP8
  Tensor columns = {};  // (C, N) FP8

  Operand() = default;
  Operand(Tensor activations) : wide(activations) {}  // NOLINT(google-explicit-constructor): the only form without FP8
  Operand(Tensor w, Tensor r, Tensor c) : wide(w), rows(r), columns(c) {}
};

// Where an op of a block writes what a linear layer reads: operand.wide, and store where it has FP8 forms. Stale: it must be computed now.
struct OperandPlace {
  Operand operand;
  Fp8Store store = {};
  bool stale = true;

  bool fp8() const { return store.rows.defined() || store.columns.defined(); }
};

}  // namespace hlat
