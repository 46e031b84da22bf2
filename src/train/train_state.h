// Where a run stands: all that a resume needs beside the tensors. The loop advances it and nothing else.
#pragma once

#include <cstdint>
#include <optional>

#include "data/data_state.h"

namespace hlat {

struct TrainState {
  int64_t step = 0;               // steps done
  std::optional<DataState> data;  // of the lanes that this rank reads; none on ranks that read no batches
};

}  // namespace hlat
