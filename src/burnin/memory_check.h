// Patterns through a share of the memory that is free, of the host and of the GPU.
#pragma once

#include "burnin/check_run.h"

namespace hlat {

PartReport check_memory(const CheckRun& run, double seconds);

}  // namespace hlat
