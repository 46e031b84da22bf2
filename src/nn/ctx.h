// What a layer may use while it runs: ops, memory, parameters, the tape, the edges of tensor-parallel regions, and the
// shape of the micro-batch.
#pragma once

#include <functional>

#include "nn/kv_cache.h"
#include "nn/tape.h"
#include "nn/watch.h"
#include "ops/ops.h"
#include "parallel/tp_region.h"
#include "param/param_store.h"

namespace hlat {

struct Ctx {
  Ops& ops;
  Memory& memory;
  const ParamStore& params;
  Tape& tape;
  TpRegion tp;
  AttentionShape attention;  // of the micro-batch, with this rank's heads
  Tensor rope;               // (T, E) cosines and sines
  double norm_eps = 1e-5;
  bool accumulate = false;                         // gradients add to those of earlier micro-batches
  std::function<void(int group)> group_done = {};  // called when a group's gradients of this step are complete
  const KvPass* kv = nullptr;                      // of a pass with cached keys and values; null: every sequence stands for itself
  const Watch* watch = nullptr;                    // what is measured on the way; null: nothing
  int64_t layer = 0;                               // whose block runs, of the whole model

  DType act() const { return params.precision().compute; }
  DType stat() const { return act() == DType::f64 ? DType::f64 : DType::f32; }
  int64_t tokens() const { return attention.tokens(); }
  int64_t rows() const { return tp.rows(tokens()); }  // of the residual stream on this rank
  void done(int group) const {
    if (group_done) group_done(group);
  }
  Region& temp() { return memory[Purpose::temp]; }
  Tensor temp(const Shape& shape, std::string_view label) { return temp().alloc(act(), shape, label); }

  // The edges of a tensor-parallel region (parallel/tp_region.h).
  Tensor enter(Tensor x) { return tp.enter(temp(), x, tokens()); }
  Tensor partial(Tensor y) { return tp.partial(temp(), y, tokens()); }
};

}  // namespace hlat
