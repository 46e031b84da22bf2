// train.micro_batch = auto at the start of a run: every rank finds what fits its own memory, and all take the least of that. A run that
// goes on keeps the one it was saved with, since other micro-batches add up in another order.
#pragma once

#include <optional>

#include "comm/comm.h"
#include "config/config.h"
#include "ops/device.h"

namespace hlat {

// `config` with train.micro_batch known, the same on all ranks: `saved`, where it is given and fits on all, else the largest that does.
// Collective over `world` where it is auto.
Config with_micro_batch(Config config, Backend& backend, Comm& world, int local_ranks, std::optional<int64_t> saved = {});

}  // namespace hlat
