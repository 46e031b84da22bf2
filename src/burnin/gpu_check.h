// Error counters, temperature, power and clocks of the ranks' GPUs, as they are right after the load of the other parts.
#pragma once

#include "burnin/check_run.h"
#include "burnin/nvml.h"

namespace hlat {

// What is wrong with a GPU in this state, and what is worth a warning.
std::vector<Finding> judge_gpu(const GpuState& state, const Finding& about);

PartReport check_gpu(const CheckRun& run);

}  // namespace hlat
