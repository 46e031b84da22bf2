// Text from the model at the end of a run: a look at what it learned.
#pragma once

#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "model/executor.h"

namespace hlat {

// Up to `lines` texts (at most one per row of the micro-batch), drawn from the model's distribution, keyed by seed.
// They start after `eos` and end with it.
std::vector<std::string> sample_texts(Executor& executor, const Tokenizer& tokenizer, int32_t eos, int64_t lines);

}  // namespace hlat
