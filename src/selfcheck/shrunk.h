// The model that hlat check --model tries: a copy of the run's that takes a few MB and some milliseconds a step, and has all that its
// layout meets. Kept are tp, pp, dp, chunks, sequence parallelism, ZeRO-1, the ratio of query to kv heads and how kv heads lie on tp ranks,
// what vocabulary, ffn and sequence leave over when they are divided by tp, which linear layers have FP8 products, uneven pipeline pieces,
// tied weights, precision, recomputation, RoPE and the size of the initial logits; the size of a head where that is affordable; and a
// sequence of more than two tiles of attention, where the run's has as much. A config that is small already keeps its model and batch.
#pragma once

#include "config/config.h"

namespace hlat {

// parallel.dp of the config is known. gpu: kernels there have larger tiles and are made for few sizes of a head.
bool is_small(const Config& given);
Config shrunk(const Config& given, bool gpu = false);

}  // namespace hlat
