// A precision policy as data: what is stored and computed in which type, and how stores round. Presets are rows in which every choice has a
// fused kernel; other rows take plain steps where there is none (docs/precision.md).
// Sums inside a product are always f32 or better.
#pragma once

#include "config/config.h"
#include "ops/ops.h"

namespace hlat {

struct Precision {
  DType compute = DType::f32;  // activations and their gradients
  DType weight = DType::f32;
  bool master = false;  // an f32 copy of the weights lives with the optimizer
  DType moment = DType::f32;
  DType grad = DType::f32;                                                  // accumulation over micro-batches
  DType dp_sum = DType::f32;                                                // of gradients over ranks
  DType tp_sum = DType::f32;                                                // of partial products over ranks
  DType softmax = DType::f32, norm = DType::f32, loss = DType::f32;         // arithmetic of these operators
  Rounding weights = Rounding::nearest, moments = Rounding::nearest;        // of the optimizer's stores
  Rounding activations = Rounding::nearest, gradients = Rounding::nearest;  // gradients: of bf16 accumulation, and of sums of such
  bool keyed_noise = true;                                                  // false: ranks draw noise of their own
  bool fp8 = false;                                                         // products of linear layers (param/fp8_state.h)
  DType fp8_grad = DType::f8e5m2;                                           // gradients as operands of those
  bool fp8_weight_grads = true;                                             // products that make gradients of weights are FP8 too

  bool rounds_activations() const { return activations == Rounding::stochastic && compute == DType::bf16; }
  // Gradients are added to what is there in f32 and rounded by an op of its own.
  bool rounds_gradients() const { return grad == DType::bf16 && (gradients == Rounding::stochastic || rounds_activations()); }
  // Partial products are added up in a wider type than that of activations.
  bool wide_tp_sums() const { return compute == DType::bf16 && tp_sum == DType::f32; }
  // A pass over a micro-batch draws noise: it depends on the number of the step.
  bool noisy_passes() const { return rounds_activations() || (grad == DType::bf16 && gradients == Rounding::stochastic); }
};

Precision precision_of(PrecisionKind preset);
Precision precision_of(const Config& config);

// The stream of a tensor's noise: a function of its name or, where noise is not keyed, also of the rank that draws it.
uint64_t noise_stream(const Precision& precision, std::string_view name, int rank);

}  // namespace hlat
