// AdamW over the parameter store: global-norm clipping, then one fused update per parameter.
#pragma once

#include "config/config.h"
#include "param/param_store.h"

namespace hlat {

// Scalars that stay on the device within a step.
struct OptimScalars {
  Tensor grad_sq;    // (P) f64: squared norm of each gradient
  Tensor weight_sq;  // (P) f64: squared norm of each new weight
  Tensor scale;      // (1) f32: clipping factor
};

struct AdamW {
  OptimConfig config;
  uint64_t seed = 0;

  // Squared norms of all gradients, and the clipping factor from them.
  void measure(Ops& ops, const ParamStore& params, const OptimScalars& s) const;
  // step is 1 for the first update.
  void update(Ops& ops, const ParamStore& params, const OptimScalars& s, double lr, int64_t step) const;
};

}  // namespace hlat
