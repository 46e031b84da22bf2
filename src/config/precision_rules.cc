#include "config/precision_rules.h"

#include <fmt/format.h>

#include "config/precision_row.h"

namespace hlat {

std::vector<Violation> precision_violations(const Config& config) {
  const PrecisionConfig &given = config.precision, row = precision_row(config);
  std::vector<Violation> found;
  const auto refuse = [&](bool wrong, std::string_view key, std::string_view other, std::string message) {
    if (!wrong) return;
    std::vector<std::string> keys = {fmt::format("precision.{}", key), "train.precision"};
    if (!other.empty()) keys.insert(keys.begin() + 1, fmt::format("precision.{}", other));
    found.push_back({std::move(keys), std::move(message)});
  };
  const bool f32 = row.activations == "f32";
  refuse(row.weights != row.activations, "weights", "activations",
         fmt::format("must be the type of activations, {}: a product takes both in one type", row.activations));
  refuse(row.masters == "f32" && row.weights == "f32" && row.weights == row.activations, "masters", "weights",
         "must be none: f32 weights are their own masters");
  const auto narrow = [&](std::string_view key, const std::string& value) {
    refuse(f32 && value == "bf16", key, "activations",
           fmt::format("must be f32 with f32 activations; set precision.activations=bf16 and precision.weights=bf16, or precision.{}=f32",
                       key));
  };
  narrow("grads", row.grads);
  narrow("tp_sums", row.tp_sums);
  narrow("softmax", row.softmax);
  narrow("norms", row.norms);
  narrow("loss", row.loss);
  const auto no_effect = [&](std::string_view key, const std::string& rounding, std::string_view of, const std::string& type) {
    refuse(rounding == "stochastic" && type == "f32", key, of,
           fmt::format("has no effect: precision.{} is f32, and its stores are not rounded; give it as bf16, or leave this out", of));
  };
  no_effect("round_weights", given.round_weights, "weights", row.weights);
  no_effect("round_moments", given.round_moments, "moments", row.moments);
  no_effect("round_activations", given.round_activations, "activations", row.activations);
  no_effect("round_sums", given.round_sums, "grads", row.grads);
  const bool noise = (row.round_weights == "stochastic" && row.weights == "bf16") ||
                     (row.round_moments == "stochastic" && row.moments == "bf16") || row.round_activations == "stochastic" ||
                     row.round_sums == "stochastic";
  refuse(!row.keyed_noise && !noise, "keyed_noise", "", "has no effect: nothing is rounded stochastically; train.precision=bf16_sr does");
  const bool fp8 = row.products == "fp8";
  refuse(fp8 && f32, "products", "activations", "must be activations with f32 activations: FP8 operands are made of bf16 ones");
  refuse(fp8 && row.round_activations == "stochastic", "products", "round_activations",
         "must be activations where activations are rounded stochastically: FP8 operands are rounded to the nearest");
  refuse(fp8 && row.norms == "bf16", "products", "norms", "must be activations with norms in bf16: norms that store FP8 compute in f32");
  refuse(!fp8 && !given.fp8_grads.empty(), "fp8_grads", "products", "has no effect: no product is FP8; train.precision=fp8 has such");
  refuse(!fp8 && !given.weight_grads.empty(), "weight_grads", "products", "has no effect: no product is FP8; train.precision=fp8 has such");
  return found;
}

}  // namespace hlat
