#include "ops/rope_frequencies.h"

#include "config/config.h"

namespace hlat {

RopeFrequencies rope_frequencies(const ModelConfig& model) {
  RopeScaling scaling = RopeScaling::none;
  if (model.rope_scaling == "linear") scaling = RopeScaling::linear;
  if (model.rope_scaling == "llama3") scaling = RopeScaling::llama3;
  return {.theta = model.rope_theta,
          .scaling = scaling,
          .factor = model.rope_factor,
          .low_turns = model.rope_low_freq_factor,
          .high_turns = model.rope_high_freq_factor,
          .original_len = static_cast<double>(model.rope_original_len)};
}

}  // namespace hlat
