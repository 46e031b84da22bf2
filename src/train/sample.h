// Text from the model at the end of a run: a look at what it learned.
#pragma once

#include <string>
#include <vector>

#include "data/word_tokenizer.h"
#include "train/step_runner.h"

namespace hlat {

// Up to `lines` texts (at most one per row of the micro-batch), drawn from the model's distribution, keyed by seed.
std::vector<std::string> sample_texts(StepRunner& runner, const Config& config, const WordTokenizer& tokenizer, int64_t lines);

}  // namespace hlat
