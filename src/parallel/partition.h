// Which layers each pipeline stage runs.
// A pipeline of pp stages with chunks model pieces each has pp * chunks virtual stages, run in order; virtual stage v belongs to
// stage v % pp (parallel/schedule.h). Every virtual stage has at least one layer. The embedding goes with the first, the final norm
// and the head with the last; `cuts` is for those who want to weigh them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/part.h"

namespace hlat {

// Layers of each virtual stage, in order. Empty cuts: an even split, the first ones one layer larger where it does not divide.
// Otherwise cuts holds the first layer of each virtual stage but the first. Throws UsageError naming parallel.cuts.
std::vector<Part> partition_layers(int64_t layers, int pp, int chunks, const std::vector<int64_t>& cuts);

}  // namespace hlat
