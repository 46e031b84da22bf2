// Statistics of saved tensors, in one pass over the pieces in the order of the files. Sums are f64 per piece and added in the index's
// order, so the numbers do not depend on threads.
#pragma once

#include <optional>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/for_all.h"

namespace hlat {

struct TensorStats {
  int64_t elements = 0, zeros = 0, not_finite = 0;
  // Of the finite elements; all 0 where there is none.
  double min = 0, max = 0, mean = 0, rms = 0, deviation = 0;
};

// By number of the tensor; those that are not wanted are not read. Verifies what it reads: DamagedCheckpoint.
std::vector<std::optional<TensorStats>> tensor_stats(CheckpointReader& reader, const std::vector<bool>& wanted, int threads,
                                                     const BytesDone& done = {});

}  // namespace hlat
