// What a config leaves to the start of a run: how many replicas the started ranks make, and how many steps the epochs are.
#pragma once

#include "config/config.h"

namespace hlat {

enum class RanksAre { started, planned };  // for the words of an error

// `config` with parallel.dp known, so that tp * pp * dp == ranks. Throws UsageError when the ranks do not fit the layout,
// or the batch does not fit the replicas.
Config with_ranks(Config config, int64_t ranks, RanksAre are = RanksAre::started);

// train.steps of a run whose length is train.epochs, from the tokens of its training documents. Nothing happens where the length is given
// otherwise. Throws UsageError when the keys that depend on the steps do not fit them.
void set_steps_from_epochs(Config& config, uint64_t train_tokens);

}  // namespace hlat
