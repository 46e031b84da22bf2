// AdamW over the parameter store: global-norm clipping, then a fused update of the runs of elements this rank owns.
#pragma once

#include "config/config.h"
#include "ops/device.h"
#include "param/param_store.h"

namespace hlat {

// Scalars that stay on the device within a step. U is the number of the store's update units.
struct OptimScalars {
  Tensor grad_sq;    // (U) f64: squared norm of each unit's gradient
  Tensor weight_sq;  // (U) f64: squared norm of each unit's new weights
  Tensor scale;      // (1) f32: clipping factor
  Tensor step;       // (kAdamwStep) f64: learning rate and number of the update
  Tensor change;     // (U, kAdamwChange) f64: what the update of each unit changed, where that is measured; may be undefined
};

class AdamW {
 public:
  // rank: whose noise it is, where noise is not keyed.
  AdamW(const OptimConfig& config, uint64_t seed, int rank) : config_(config), seed_(seed), rank_(rank) {}

  // Before the update of a step: its learning rate and number, 1 for the first, go to the device.
  void begin_step(Device& device, const OptimScalars& s, double lr, int64_t step) const;
  // Squared norms of all units' gradients, and in total their sum over those that this rank counts.
  void measure(Ops& ops, const ParamStore& params, const OptimScalars& s, Tensor total /*(1) f64*/) const;
  // The clipping factor from the sum over all ranks.
  void clip(Ops& ops, const OptimScalars& s, Tensor total) const { ops.clip_scale(s.scale, total, config_.clip); }
  // The units of one bucket. measured: also tells what it changed, with the same result.
  void update(Ops& ops, const ParamStore& params, const OptimScalars& s, int bucket, bool measured = false) const;
  // Asks for the temporary memory of a measured update once, so that a run that never measures takes as much.
  void reserve_measured(Ops& ops, const ParamStore& params, Region& temp) const;

 private:
  AdamwItem item(const ParamStore& params, const OptimScalars& s, int64_t unit, bool measured) const;

  OptimConfig config_;
  uint64_t seed_;
  int rank_;
};

}  // namespace hlat
