// Text from the model at the end of a run: a look at what it learned.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "model/executor.h"

namespace hlat {

// Up to `lines` texts (at most one per row of the micro-batch), drawn from the model's distribution, keyed by seed. They start after the
// end of a document and end with it; bytes that are no character are U+FFFD. Collective over the replica; `data` is null on ranks that
// read no batches, which get no texts.
std::vector<std::string> sample_texts(Executor& executor, const Dataset* data, int64_t lines);

}  // namespace hlat
