#include "config/run_length.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace hlat {

void keep_length(TrainConfig& train, std::string_view key) {
  if (key != "train.steps") train.steps = TrainConfig{}.steps;
  if (key != "train.tokens") train.tokens = 0;
  if (key != "train.epochs") train.epochs = 0;
}

std::string_view length_key(const TrainConfig& train) {
  if (train.tokens > 0) return "train.tokens";
  return train.epochs > 0 ? "train.epochs" : "train.steps";
}

void resolve_steps(TrainConfig& train) {
  if (train.tokens > 0) train.steps = (train.tokens - 1) / tokens_per_step(train) + 1;
  if (train.epochs > 0) train.steps = 0;
}

int64_t steps_with(const TrainConfig& train, double tokens) {
  HLAT_CHECK(std::isfinite(tokens), "{} tokens", tokens);
  const double steps = std::ceil(tokens / static_cast<double>(tokens_per_step(train)));
  return static_cast<int64_t>(std::clamp(steps, 1.0, 4611686018427387904.0));
}

std::string length_text(const TrainConfig& train) {
  const std::string_view key = length_key(train);
  if (key == "train.steps" || !steps_known(train)) return {};
  const std::string length = train.tokens > 0 ? fmt::format("{}", train.tokens) : fmt::format("{}", train.epochs);
  return fmt::format("{} steps of {} tokens, from {} = {}", train.steps, tokens_per_step(train), key, length);
}

}  // namespace hlat
