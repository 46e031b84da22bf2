// Weights that several ranks hold are equal by construction. Their holders update them from sums over dp, which a different group took
// for each holder: where groups may sum in different orders (Mesh::sums_agree), equal terms give sums that differ in their last bits. So
// after the update the first holder's rows are handed to the others, axis by axis: its weights are the weights, and the optimizer state
// that the other holders keep of those rows is never seen. Small rows are packed, so that one message per axis carries all norms.
// Where groups agree, and where ranks round with noise of their own to show how they drift, nothing is allocated, computed or sent.
#pragma once

#include <vector>

#include "ops/ops.h"
#include "param/param_store.h"

namespace hlat {

class SharedWeights {
 public:
  SharedWeights(const ParamStore& params, const Mesh& mesh, Ops& ops, Region& io);

  void hand_out() const;  // the weights are updated and gathered. Collective over the axes of the sharing lists.

 private:
  struct Handout {
    Comm& comm;
    std::vector<Tensor> large, small;  // flat
    Tensor packed;                     // what is small, one after the other
  };

  Ops& ops_;
  std::vector<Handout> handouts_;  // by axis; a row that is shared along two is handed along one, then along the other
};

}  // namespace hlat
