// The model that hlat check --model tries: a copy of the run's that takes a few MB and some milliseconds a step, and has all that its
// layout meets. Kept are tp, pp, dp, chunks, sequence parallelism, ZeRO-1, the ratio of query to kv heads and how kv heads lie on tp ranks,
// what vocabulary, ffn and sequence leave over when they are divided by tp, which linear layers have FP8 products, uneven pipeline pieces,
// tied weights, precision, recomputation, RoPE and the size of the initial logits. A config that is small already keeps its model and
// batch.
#pragma once

#include "config/config.h"

namespace hlat {

// parallel.dp of the config is known.
bool is_small(const Config& given);
Config shrunk(const Config& given);

}  // namespace hlat
