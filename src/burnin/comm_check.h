// Collectives and messages along each axis of the mesh: every element against the known one, and bandwidths as nccl-tests count them. Then
// messages between neighbours alone, there and back, which show the rank or link that is slow.
#pragma once

#include "burnin/check_run.h"

namespace hlat {

PartReport check_comm(const CheckRun& run);

}  // namespace hlat
