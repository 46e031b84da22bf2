// What may differ between a saved run and the config that goes on with it. A run keeps what decides its numbers: the model, the batches,
// the seed, the optimizer; how they are computed, for how long and what is recorded of it may change. A fork (checkpoint.resume_from) may
// change the optimizer too. Whether data and tokenizer are those of the saved run is decided by their contents, with the data position.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace hlat {

// Both configs are resolved: nothing that the start of a run finds out is `auto`. Returns what changed and may, a line for the log each:
// "parallel.tp 2 -> 4". Throws one UsageError with all contradictions, one line per key, and last a line about what may change.
std::vector<std::string> check_continuation(const Config& saved, const Config& now, bool forked);

}  // namespace hlat
