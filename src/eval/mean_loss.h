// The mean loss of rows that nothing is learned from.
#pragma once

#include "data/batch.h"
#include "model/executor.h"

namespace hlat {

// Over `rows` rows of all replicas together, a multiple of their micro-batches. Collective. `source` hands out this replica's share, on
// ranks whose executor reads batches; null elsewhere.
double mean_loss(Executor& executor, int64_t rows, BatchSource* source);

}  // namespace hlat
