// The rows that a run begins with, read beside its training data: the same on every rank, layout and resume of a run.
#pragma once

#include "data/batch.h"
#include "data/dataset.h"

namespace hlat {

// Those of lanes [0, rows) in the first step.
Batch first_rows(const Dataset& data, int64_t rows);

}  // namespace hlat
