// Learning rate as a function of the update number.
#pragma once

#include "config/config.h"

namespace hlat {

// step is 1 for the first update; total is where the schedule ends (later updates stay at the floor).
// Warm-up is linear from 0 and reaches lr at step == warmup. With p = (step - warmup) / (total - warmup):
//   cosine_clamped       max(min_ratio, (1 + cos(pi p)) / 2)          the HLAT schedule
//   cosine               min_ratio + (1 - min_ratio) (1 + cos(pi p)) / 2
//   linear               1 - (1 - min_ratio) p
//   constant             1
//   warmup_stable_decay  1, then linear to min_ratio over the last decay_share of the steps
double learning_rate(const OptimConfig& optim, int64_t step, int64_t total);

}  // namespace hlat
