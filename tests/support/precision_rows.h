// Precision policies for tests: the presets, and rows outside them that take plain steps.
#pragma once

#include <string>
#include <vector>

#include "config/precision_row.h"

namespace hlat {

struct PrecisionChoice {
  PrecisionKind preset = PrecisionKind::fp32;
  PrecisionConfig choices = {};

  void apply(Config& c) const {
    c.train.precision = preset;
    c.precision = choices;
  }
  std::string words() const {
    Config c;
    apply(c);
    return precision_words(c);
  }
};

inline PrecisionConfig choices(const std::vector<std::pair<std::string PrecisionConfig::*, std::string>>& values) {
  PrecisionConfig c;
  for (const auto& [member, value] : values) c.*member = value;
  return c;
}

inline std::vector<PrecisionChoice> preset_rows() {
  using enum PrecisionKind;
  return {{fp32}, {mixed}, {mixed_sr}, {bf16_sr}, {bf16}};
}

// HLAT-7B: bf16 everywhere, stochastic rounding of every store, operators in bf16 too.
inline PrecisionChoice hlat_7b_row() {
  using P = PrecisionConfig;
  return {PrecisionKind::bf16_sr, choices({{&P::softmax, "bf16"},
                                           {&P::norms, "bf16"},
                                           {&P::loss, "bf16"},
                                           {&P::round_activations, "stochastic"},
                                           {&P::round_sums, "stochastic"}})};
}

inline std::vector<PrecisionChoice> plain_rows() {
  using P = PrecisionConfig;
  using enum PrecisionKind;
  return {{mixed, choices({{&P::softmax, "bf16"}})},
          {mixed, choices({{&P::norms, "bf16"}, {&P::loss, "bf16"}})},
          {mixed, choices({{&P::tp_sums, "f32"}, {&P::grads, "bf16"}})},
          {mixed, choices({{&P::dp_sums, "bf16"}, {&P::moments, "bf16"}, {&P::round_moments, "stochastic"}})},
          {bf16_sr, choices({{&P::round_sums, "stochastic"}, {&P::moments, "f32"}})},
          {mixed, choices({{&P::round_activations, "stochastic"}})},
          {bf16_sr, choices({{&P::round_activations, "stochastic"}, {&P::tp_sums, "f32"}, {&P::dp_sums, "f32"}})},
          hlat_7b_row()};
}

inline std::vector<PrecisionChoice> fp8_rows() {
  using P = PrecisionConfig;
  using enum PrecisionKind;
  return {{fp8}, {fp8_sr}, {fp8, choices({{&P::fp8_grads, "e4m3"}})}, {fp8, choices({{&P::weight_grads, "bf16"}})}};
}

// Shapes that FP8 products take, on up to four tp ranks.
inline void take_fp8_shapes(Config& c) {
  c.model.hidden = c.model.ffn = 128;
  c.model.heads = 8;
  c.train.seq_len = 32;
}

// Where the policy has such products.
inline void fit_fp8(Config& c) {
  if (precision_row(c).products == "fp8") take_fp8_shapes(c);
}

}  // namespace hlat
