// A table of cosines and sines against what the config says it is: a wrong base or scaling on one stage, or a table that was written over,
// turns queries and keys by other angles there, and a model learns around it.
#pragma once

#include <string>

#include "ops/device.h"
#include "ops/rope_frequencies.h"

namespace hlat {

// Looks at `positions` rows of the table at even distances, the last one among them. Words on the first wrong element; empty: none is.
std::string wrong_rope(Device& device, const Tensor& table /*(T, E)*/, const RopeFrequencies& frequencies, int64_t positions);

}  // namespace hlat
