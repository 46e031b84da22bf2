// Weights of FP8 and their scales, between steps. Weights are made of their masters when a run starts and by every update; each rank makes
// what it owns, and gathers the rest. Collective over the replicas and tp ranks of a stage.
// An evaluation computes with the masters in the type of activations, as one of a checkpoint of this step would: `widen` puts them into the
// memory of the FP8 weights and their transposes, `narrow` makes these again, bit by bit what they were.
#pragma once

#include "ops/ops.h"
#include "parallel/mesh.h"
#include "param/param_store.h"

namespace hlat {

// Where scales come from when a run starts. Those of weights are measured, or those of a checkpoint.
enum class Fp8Start : uint8_t {
  declared,  // initial weights
  measured,  // weights that exist, without scales: the first step that is computed measures inputs and gradients (train/fp8_calibration.h)
  saved      // of a checkpoint
};

class Fp8Weights {
 public:
  // Takes memory for what ranks exchange. A policy without FP8 needs nothing, and all calls do nothing. tokens: of a step.
  Fp8Weights(const ParamStore& params, const Mesh& mesh, bool zero1, int64_t tokens, Ops& ops, Region& io);

  // Before the first step, when masters are there, and scales where they are saved ones.
  void make(Fp8Start start);
  // Whether scales of inputs and gradients are yet to be measured. The same on all ranks.
  bool uncalibrated() const { return uncalibrated_; }
  // Before the passes of a step.
  void begin_step() const;
  // Before the update of a step: the scales of the next one. clip: the clipping factor; NaN leaves everything as it is, like the update.
  void set_scales(Tensor clip, int64_t step);
  // In its place where the update is left out: inputs and gradients were met all the same. Weights, which stay, keep their scales.
  void take_in(int64_t step) const;
  // After the update, when all weights are gathered.
  void transpose() const;

  // Around passes with a cache (Executor::forward_cached), between steps.
  void widen();
  void narrow();
  bool wide() const { return wide_; }

  // Scales and history of inputs and gradients: the declared ones; then, after passes, those that follow from what these met and from
  // nothing before; then calibrated.
  void begin_calibration() const;
  void measure_passes(int64_t step) const;
  void end_calibration() { uncalibrated_ = false; }

 private:
  Tensor exchange(const Tensor& met) const;  // what all ranks met of these units: (ranks, units, kFp8Seen)
  void round() const;                        // masters to FP8, all gathered
  void gather(Tensor Bucket::*form) const;
  void hand_out() const;  // rows that several ranks hold (train/shared_weights.h)

  const ParamStore& params_;
  const Mesh& mesh_;
  bool zero1_;
  int64_t tokens_;
  bool uncalibrated_ = false;
  Ops& ops_;
  Tensor of_tp_, of_all_;  // gathered
  bool wide_ = false;
};

}  // namespace hlat
