// Replica health: every so many steps, ranks that must hold equal data compare it, and a difference ends the run with the
// name of the tensor and the ranks, on all ranks of the group that compares. What is compared (each rank with its peers):
//
//   gradients, before the update   the rows that sharing lists name (param_spec.h), which have been summed over their axis or
//                                  computed alike: checksums, taken before the sum over dp; over dp without ZeRO-1: checksums;
//                                  and the sums over dp themselves, by the sums of their elements (sum_check.h)
//   weights, after the update      the same rows over their axis; over dp all: checksums; scales of FP8 and their history over tp and dp
//   state, before it is saved      weights as above; over dp without ZeRO-1 also moments and masters: checksums
//
// Where ranks round with noise of their own (precision.keyed_noise=false) replicas part, as is wanted: then only the sums of gradients
// over dp are checked. Every gradient compared here is a sum over the group, or made from such sums, so weights that differ do not show in
// it: they are found as weights. Buffers come from the io region when this is made, so a step with a check takes no more memory than any
// other; between checks nothing is computed or sent.
#pragma once

#include <optional>
#include <vector>

#include "health/replicas.h"
#include "health/sum_check.h"
#include "parallel/mesh.h"

namespace hlat {

class Health {
 public:
  // every: steps between checks, 0 for never.
  Health(const ParamStore& params, const Mesh& mesh, bool zero1, int64_t every, Ops& ops, Device& device, Region& io);

  // Whether this rank has something to check in this step: the same answer on all ranks of a group.
  bool due(int64_t step) const { return every_ > 0 && step % every_ == 0; }

  // Of a step that is due, in this order:
  void before_reduction(size_t bucket) const;  // each bucket, complete but for the sum over dp
  void check_gradients(int64_t step) const;    // all are summed
  void check_weights(int64_t step) const;      // updated and gathered
  // Of any step, where this checks at all: what is about to be saved.
  void check_state(int64_t step) const;
  // What these compare on this rank, for the log: "weights of 39 tensors and the sums of gradients over dp".
  std::string compared() const;

 private:
  void compare_gradients(const Replicas& r, int64_t step) const;
  void check_scales(int64_t step) const;

  const ParamStore& params_;
  const Mesh& mesh_;
  Ops& ops_;
  Device& device_;
  int64_t every_;
  bool zero1_;
  std::vector<Replicas> shared_;  // one for each axis of the sharing lists
  std::optional<Replicas> dp_;    // none of these when nothing is ever checked
  std::optional<SumCheck> sums_;
};

}  // namespace hlat
