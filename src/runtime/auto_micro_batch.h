// train.micro_batch = auto at the start of a run: every rank finds what fits its own memory, and all take the least of that.
#pragma once

#include "comm/comm.h"
#include "config/config.h"
#include "ops/device.h"

namespace hlat {

// `config` with train.micro_batch known, the same on all ranks. Collective over `world` where it is auto.
Config with_micro_batch(Config config, Backend& backend, Comm& world, int local_ranks);

}  // namespace hlat
