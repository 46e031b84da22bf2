// Weights of FP8 and their scales, between steps. Weights are made of their masters when a run starts and by every update; each rank makes
// what it owns, and gathers the rest. Collective over the replicas and tp ranks of a stage.
// An evaluation computes with the masters in the type of activations, as one of a checkpoint of this step would: `widen` puts them into the
// memory of the FP8 weights and their transposes, `narrow` makes these again, bit by bit what they were.
#pragma once

#include "ops/ops.h"
#include "parallel/mesh.h"
#include "param/param_store.h"

namespace hlat {

class Fp8Weights {
 public:
  // Takes memory for what ranks exchange. A policy without FP8 needs nothing, and all calls do nothing.
  Fp8Weights(const ParamStore& params, const Mesh& mesh, bool zero1, Ops& ops, Region& io);

  // Before the first step, when masters are there. measured: scales of weights follow from them; else scales are those of a checkpoint.
  void make(bool measured) const;
  // Before the passes of a step.
  void begin_step() const;
  // Before the update of a step: the scales of the next one. clip: the clipping factor; NaN leaves everything as it is, like the update.
  void set_scales(Tensor clip, int64_t step) const;
  // After the update, when all weights are gathered.
  void transpose() const;

  // Around passes with a cache (Executor::forward_cached), between steps.
  void widen();
  void narrow();
  bool wide() const { return wide_; }

 private:
  Tensor exchange() const;  // what all ranks met: (ranks, units, kFp8Seen)
  void round() const;       // masters to FP8, all gathered
  void gather(Tensor Bucket::*form) const;
  void hand_out() const;  // rows that several ranks hold (train/shared_weights.h)

  const ParamStore& params_;
  const Mesh& mesh_;
  bool zero1_;
  Ops& ops_;
  Tensor of_tp_, of_all_;  // gathered
  bool wide_ = false;
};

}  // namespace hlat
