#include "param/precision.h"

#include "config/precision_row.h"

namespace hlat {
namespace {

DType type_of(const std::string& word) { return word == "bf16" ? DType::bf16 : DType::f32; }
Rounding rounding_of(const std::string& word) { return word == "stochastic" ? Rounding::stochastic : Rounding::nearest; }

Precision precision_of_row(const PrecisionConfig& row) {
  return {.compute = type_of(row.activations),
          .weight = type_of(row.weights),
          .master = row.masters == "f32",
          .moment = type_of(row.moments),
          .grad = type_of(row.grads),
          .dp_sum = type_of(row.dp_sums),
          .tp_sum = type_of(row.tp_sums),
          .softmax = type_of(row.softmax),
          .norm = type_of(row.norms),
          .loss = type_of(row.loss),
          .weights = rounding_of(row.round_weights),
          .moments = rounding_of(row.round_moments),
          .activations = rounding_of(row.round_activations),
          .gradients = rounding_of(row.round_sums),
          .keyed_noise = row.keyed_noise,
          .fp8 = row.products == "fp8",
          .fp8_grad = row.fp8_grads == "e4m3" ? DType::f8e4m3 : DType::f8e5m2,
          .fp8_weight_grads = row.weight_grads == "fp8"};
}

}  // namespace

Precision precision_of(PrecisionKind preset) { return precision_of_row(precision_row(preset)); }
Precision precision_of(const Config& config) { return precision_of_row(precision_row(config)); }

uint64_t noise_stream(const Precision& precision, std::string_view name, int rank) {
  return precision.keyed_noise ? hash_name(name) : hash_name(fmt::format("{} of rank {}", name, rank));
}

}  // namespace hlat
