// Where a tensor of a layer lies in the global tensor of the step, and how it is rounded when it is stored. Under a policy that rounds
// activations stochastically an op writes to f32 memory (Ctx::wide), from f32 copies of what it reads (Ctx::widened), and Ctx::store rounds
// the result into its place. Under all others wide and widened are the tensors themselves, store does nothing, and ops write as they do.
// The noise is keyed by the name of the tensor, the step, and the global token and column: the same in every layout, and when a block is
// computed again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "param/param_spec.h"

namespace hlat {

// Which columns of a global matrix a local one holds. Empty: all of them.
struct Columns {
  int64_t width = 0;
  std::vector<SlicePart> parts = {};

  // Of what a weight's products have along one of its dimensions: outputs along 0, inputs along 1.
  static Columns along(const Slice& slice, int dim) {
    if (slice.dim != dim) return {};
    return {.width = slice.global[dim], .parts = slice.parts};
  }
};

struct StorePlace {
  std::string_view name;  // within its layer
  int64_t row = 0;        // token of the micro-batch in its first row
  Columns columns = {};
};

// What noise of a pass over a micro-batch is keyed by.
struct PassNoise {
  uint64_t seed = 0;
  int64_t step = 0;       // 0: not a training step, and nothing is rounded stochastically
  int64_t first_row = 0;  // token of the global batch that the micro-batch begins with
  int rank = 0;           // for noise that is not keyed
};

}  // namespace hlat
