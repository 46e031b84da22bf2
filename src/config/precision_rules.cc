#include "config/precision_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/fp8.h"
#include "config/linear_shapes.h"
#include "config/precision_row.h"

namespace hlat {

namespace {

std::string cut_words(const ModelConfig& m, LinearPlace place, int rank, int tp) {
  const LinearShape whole = linear_shapes(m)[static_cast<size_t>(place)], shard = linear_shard(m, place, rank, tp);
  const auto words = [&](int64_t part, int64_t all, std::string_view of) {
    return fmt::format("tp rank {} has {} of the {} columns of {}; FP8 products need a multiple of {}", rank, part, all, of, kFp8Grain);
  };
  switch (place) {
    case LinearPlace::qkv: return words(shard.outputs, whole.outputs, "queries, keys and values");
    case LinearPlace::output:
      return words(shard.inputs, whole.inputs, fmt::format("all heads ({} of {})", shard.inputs / m.head_dim(), m.heads));
    case LinearPlace::gate_up: return words(shard.outputs, whole.outputs, "gate and up together (model.ffn)");
    case LinearPlace::down: return words(shard.inputs, whole.inputs, "model.ffn");
  }
  return {};
}

// At most one of attention and one of the MLP: the second layer of each has fewer columns, and is more often the one that is cut.
std::vector<Violation> fp8_cuts(const ModelConfig& m, int tp) {
  std::vector<Violation> found;
  const auto look = [&](LinearPlace place, std::vector<std::string> keys) {
    const std::optional<int> rank = fp8_cut(m, place, tp);
    if (rank) found.push_back({std::move(keys), cut_words(m, place, *rank, tp)});
    return rank.has_value();
  };
  if (!look(LinearPlace::down, {"parallel.tp", "model.ffn", "train.precision"}))
    look(LinearPlace::gate_up, {"parallel.tp", "model.ffn", "train.precision"});
  if (!look(LinearPlace::output, {"parallel.tp", "model.heads", "train.precision"}))
    look(LinearPlace::qkv, {"parallel.tp", "model.heads", "model.kv_heads", "train.precision"});
  return found;
}

// Which products are FP8 is decided by the whole model's dimensions, the same in every layout: a layout that would cut them is refused.
std::vector<Violation> fp8_shape_violations(const Config& config) {
  std::vector<Violation> found;
  const ModelConfig& m = config.model;
  if (std::ranges::none_of(linear_shapes(m), [](const LinearShape& l) { return fp8_fits(l.outputs, l.inputs); }))
    found.push_back(
        {{"train.precision", "model.hidden", "model.ffn"},
         fmt::format("no linear layer of this model has dimensions that are multiples of {}: no product would be FP8", kFp8Grain)});
  const int64_t tp = config.parallel.tp, rows = config.train.global_batch / std::max<int64_t>(1, config.parallel.dp);
  const int64_t given = config.train.micro_batch, tokens = (given > 0 ? given : rows) * config.train.seq_len;
  if (tokens % kFp8Grain != 0 && given > 0)
    found.push_back({{"train.seq_len", "train.micro_batch", "train.precision"},
                     fmt::format("a micro-batch has {} tokens; FP8 products need a multiple of {}", tokens, kFp8Grain)});
  // Of a micro-batch that is chosen: if the largest one does not do, none does.
  if (tokens % kFp8Grain != 0 && given <= 0)
    found.push_back({{"train.seq_len", "train.global_batch", "parallel.dp", "train.precision"},
                     fmt::format("even a micro-batch of all {} sequences of a replica has {} tokens; FP8 products need a multiple of {}: "
                                 "fewer replicas or a larger batch have more",
                                 rows, tokens, kFp8Grain)});
  if (!m.coalesced)
    found.push_back({{"model.coalesced", "train.precision"}, "must be true with FP8 products: separate projections have none"});
  if (tp <= 1 || tp > std::min(m.heads, m.ffn) || m.heads % m.kv() != 0) return found;
  for (Violation& v : fp8_cuts(m, static_cast<int>(tp))) found.push_back(std::move(v));
  return found;
}

}  // namespace

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
  refuse(fp8 && f32, "activations", "products", "must be bf16 with FP8 products, whose operands are made of bf16 values");
  refuse(fp8 && row.round_activations == "stochastic", "round_activations", "products",
         "must be nearest with FP8 products, whose operands are rounded to the nearest");
  refuse(fp8 && row.norms == "bf16", "norms", "products", "must be f32 with FP8 products: norms that store FP8 compute in f32");
  refuse(!fp8 && !given.fp8_grads.empty(), "fp8_grads", "products", "has no effect: no product is FP8; train.precision=fp8 has such");
  refuse(!fp8 && !given.weight_grads.empty(), "weight_grads", "products", "has no effect: no product is FP8; train.precision=fp8 has such");
  if (fp8)
    for (Violation& v : fp8_shape_violations(config)) found.push_back(std::move(v));
  return found;
}

}  // namespace hlat
