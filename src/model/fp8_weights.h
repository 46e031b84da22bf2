// Weights of FP8 and their scales, between steps. Weights are made of their masters when a run starts and by every update; each rank makes
// what it owns, and gathers the rest. Collective over the replicas and tp ranks of a stage.
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

 private:
  Tensor exchange() const;  // what all ranks met: (ranks, units, kFp8Seen)

  const ParamStore& params_;
  const Mesh& mesh_;
  bool zero1_;
  Ops& ops_;
  Tensor of_tp_, of_all_;  // gathered
};

}  // namespace hlat
