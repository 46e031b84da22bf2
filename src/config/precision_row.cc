#include "config/precision_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace hlat {
namespace {

using Choice = std::pair<const char*, std::string PrecisionConfig::*>;

constexpr std::array kChoices = {
    Choice{"activations", &PrecisionConfig::activations},
    Choice{"weights", &PrecisionConfig::weights},
    Choice{"masters", &PrecisionConfig::masters},
    Choice{"moments", &PrecisionConfig::moments},
    Choice{"grads", &PrecisionConfig::grads},
    Choice{"dp_sums", &PrecisionConfig::dp_sums},
    Choice{"tp_sums", &PrecisionConfig::tp_sums},
    Choice{"softmax", &PrecisionConfig::softmax},
    Choice{"norms", &PrecisionConfig::norms},
    Choice{"loss", &PrecisionConfig::loss},
    Choice{"round_weights", &PrecisionConfig::round_weights},
    Choice{"round_moments", &PrecisionConfig::round_moments},
    Choice{"round_activations", &PrecisionConfig::round_activations},
    Choice{"round_sums", &PrecisionConfig::round_sums},
    Choice{"products", &PrecisionConfig::products},
    Choice{"fp8_grads", &PrecisionConfig::fp8_grads},
    Choice{"weight_grads", &PrecisionConfig::weight_grads},
};

}  // namespace

PrecisionConfig precision_row(PrecisionKind preset) {
  using enum PrecisionKind;
  const bool f32 = preset == fp32;
  const bool masters = preset == mixed || preset == mixed_sr || preset == fp8;
  const bool stochastic = preset == mixed_sr || preset == bf16_sr || preset == fp8_sr;
  const char* model = f32 ? "f32" : "bf16";
  const char* state = f32 || masters ? "f32" : "bf16";
  const char* stores = stochastic ? "stochastic" : "nearest";
  PrecisionConfig row;
  row.activations = row.weights = row.tp_sums = model;
  row.masters = masters ? "f32" : "none";
  row.moments = row.grads = row.dp_sums = state;
  row.softmax = row.norms = row.loss = "f32";
  row.round_weights = row.round_moments = stores;
  row.round_activations = row.round_sums = "nearest";
  row.products = preset == fp8 || preset == fp8_sr ? "fp8" : "activations";
  row.fp8_grads = "e5m2";
  row.weight_grads = "fp8";
  return row;
}

PrecisionConfig precision_row(const Config& config) {
  PrecisionConfig row = precision_row(config.train.precision);
  for (const auto& [name, member] : kChoices)
    if (!(config.precision.*member).empty()) row.*member = config.precision.*member;
  row.keyed_noise = config.precision.keyed_noise;
  return row;
}

std::string policy_choice(const Config& config, std::string_view key) {
  const PrecisionConfig row = precision_row(config.train.precision);
  for (const auto& [name, member] : kChoices)
    if (key == fmt::format("precision.{}", name) && (config.precision.*member).empty()) return row.*member;
  return {};
}

std::string precision_words(const Config& config) {
  const PrecisionConfig preset = precision_row(config.train.precision), row = precision_row(config);
  std::vector<std::string> changed;
  for (const auto& [name, member] : kChoices)
    if (row.*member != preset.*member) changed.push_back(fmt::format("{}={}", name, row.*member));
  if (!row.keyed_noise) changed.emplace_back("keyed_noise=false");
  const std::string name(name_of(config.train.precision));
  return changed.empty() ? name : fmt::format("{} with {}", name, fmt::join(changed, ", "));
}

}  // namespace hlat
