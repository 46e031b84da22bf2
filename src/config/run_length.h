// How long a run is. train.steps says it, or train.tokens, or train.epochs: one of them, and the steps follow from the others. Of tokens
// they follow when the config is read; of epochs when the data is known (set_steps_from_epochs in config/resolve.h), and are 0 until then.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "config/config.h"

namespace hlat {

inline constexpr std::array<std::string_view, 3> kLengthKeys = {"train.steps", "train.tokens", "train.epochs"};

// Forgets what the other two keys say.
void keep_length(TrainConfig& train, std::string_view key);

// The key that the steps follow from: train.tokens, train.epochs, or train.steps itself.
std::string_view length_key(const TrainConfig& train);

// Steps of the run where train.tokens says how long it is, rounded up; 0, not yet known, where train.epochs does.
void resolve_steps(TrainConfig& train);

inline bool steps_known(const TrainConfig& train) { return train.steps > 0; }
inline int64_t tokens_per_step(const TrainConfig& train) { return train.global_batch * train.seq_len; }

// Whole steps that hold at least this many tokens.
int64_t steps_with(const TrainConfig& train, double tokens);

// "123 steps of 8192 tokens, from train.tokens = 1000000" for a log; empty where train.steps was given.
std::string length_text(const TrainConfig& train);

}  // namespace hlat
