// What a config leaves to the start of a run: how many replicas the started ranks make.
#pragma once

#include "config/config.h"

namespace hlat {

enum class RanksAre { started, planned };  // for the words of an error

// `config` with parallel.dp known, so that tp * pp * dp == ranks. Throws UsageError when the ranks do not fit the layout,
// or the batch does not fit the replicas.
Config with_ranks(Config config, int64_t ranks, RanksAre are = RanksAre::started);

}  // namespace hlat
