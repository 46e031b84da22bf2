// What a layer may use while it runs: ops, memory, parameters, the tape, and the shape of the micro-batch.
#pragma once

#include "nn/tape.h"
#include "ops/ops.h"
#include "param/param_store.h"

namespace hlat {

struct Ctx {
  Ops& ops;
  Memory& memory;
  const ParamStore& params;
  Tape& tape;
  AttentionShape attention;  // of the micro-batch
  Tensor rope;               // (T, E) cosines and sines
  double norm_eps = 1e-5;
  bool accumulate = false;  // gradients add to those of earlier micro-batches

  DType act() const { return params.precision().compute; }
  DType stat() const { return act() == DType::f64 ? DType::f64 : DType::f32; }
  int64_t tokens() const { return attention.tokens(); }
  Region& temp() { return memory[Purpose::temp]; }
  Tensor temp(const Shape& shape, std::string_view label) { return temp().alloc(act(), shape, label); }
};

}  // namespace hlat
