// How many rows of a step's batch were there before, in the same batch or in that of the step that was measured before: a source that is
// read twice, ranks that read the same rows, a reader that stands still. Rows are known by a hash of their tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/comm.h"
#include "data/batch.h"

namespace hlat {

class RepeatedRows {
 public:
  void begin() { own_.clear(); }
  void add(const Batch& batch);
  // Of the rows of all ranks of the group, which have read as many each. Collective.
  int64_t count(Comm& dp);

 private:
  std::vector<uint64_t> own_, before_;  // of this rank, of the step; of all ranks, of the step before, sorted
};

}  // namespace hlat
