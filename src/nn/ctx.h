// What a layer may use while it runs: ops, memory, parameters, the tape, the edges of tensor-parallel regions, the shape of the
// micro-batch, and how what it computes is stored (nn/stored.h).
#pragma once

#include <functional>

#include "nn/kv_cache.h"
#include "nn/planted.h"
#include "nn/stored.h"
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
  Comm* holders = nullptr;   // tp ranks with the same kv heads, this one among them; null: nobody else has them
  AttentionShape attention;  // of the micro-batch, with this rank's heads
  Tensor rope;               // (T, E) cosines and sines
  double norm_eps = 1e-5;
  bool accumulate = false;                         // gradients add to those of earlier micro-batches
  std::function<void(int group)> group_done = {};  // called when a group's gradients of this step are complete
  PassNoise noise = {};
  const KvPass* kv = nullptr;              // of a pass with cached keys and values; null: every sequence stands for itself
  const Watch* watch = nullptr;            // what is measured on the way; null: nothing
  const PlantedPasses* planted = nullptr;  // faults
  int64_t layer = 0;                       // whose block runs, of the whole model

  const Precision& precision() const { return params.precision(); }
  DType act() const { return precision().compute; }
  DType stat() const { return act() == DType::f64 ? DType::f64 : DType::f32; }
  int64_t tokens() const { return attention.tokens(); }
  const PlantedAttention* planted_here() const { return planted != nullptr ? planted->attention(layer) : nullptr; }
  int64_t rows() const { return tp.rows(tokens()); }  // of the residual stream on this rank
  void done(int group) const {
    if (group_done) group_done(group);
  }
  Region& temp() { return memory[Purpose::temp]; }
  Tensor temp(const Shape& shape, std::string_view label) { return temp().alloc(act(), shape, label); }

  // The edge into a tensor-parallel region (parallel/tp_region.h); the way out is nn/tp_sum.h.
  Tensor enter(Tensor x) { return tp.enter(temp(), x, tokens()); }

  // Stores (nn/stored.h). What these return lies in temporary memory of the caller's scope, or is the tensor itself.
  bool rounds() const { return noise.step > 0 && precision().rounds_activations(); }
  Tensor wide(const Tensor& dst) { return rounds() ? temp().alloc(DType::f32, dst.shape, "result in f32") : dst; }
  Tensor widened(const Tensor& x);
  // dst = src, rounded by the policy; nothing where src is dst.
  void store(const Tensor& dst, const Tensor& src, const StorePlace& place);
  // The place of the residual stream and of all that has its rows.
  StorePlace residual(std::string_view name) const { return {.name = name, .row = tp.first_row(tokens())}; }

  // The gradient of a parameter, or f32 memory whose content add_gradient adds to it. `adds`: whether an op must add to it itself.
  struct GradientPlace {
    Tensor tensor;
    bool adds = false;
  };
  GradientPlace gradient(ParamId id, bool accumulates);
  // After the op. row: the first token it is of, which keys the noise of a sum.
  void add_gradient(ParamId id, const GradientPlace& place, bool accumulates, int64_t row = 0);
};

}  // namespace hlat
