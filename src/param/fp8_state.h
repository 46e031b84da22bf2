// What the FP8 products of a rank's linear layers scale with. Each layer has three operands, its input, its weight and the gradient of its
// output, and each of them one scale for the whole model, whatever the layout: the largest value of a step over all micro-batches and ranks
// goes into a history of steps, and the scale of the next step follows from that (Ops::fp8_scales).
// A new run begins with declared scales, and those of weights are measured (model/fp8_weights.h). Where weights exist already, a first step
// measures the others too before it is done (train/fp8_calibration.h).
#pragma once

#include <string_view>
#include <vector>

#include "ops/ops.h"
#include "param/param_spec.h"
#include "param/precision.h"
#include "tensor/region.h"

namespace hlat {

enum class Fp8Role : uint8_t { input, gradient, weight };
inline constexpr int kFp8Roles = 3;
std::string_view name_of(Fp8Role role);

class Fp8State {
 public:
  Fp8State() = default;  // of a policy without FP8
  Fp8State(const std::vector<ParamSpec>& specs, const Precision& precision, Region& region);

  int64_t units() const { return static_cast<int64_t>(params_.size()) * kFp8Roles; }
  const std::vector<ParamId>& params() const { return params_; }  // weights of FP8
  // Units of inputs come first, then those of gradients, then those of weights.
  int64_t unit(ParamId id, Fp8Role role) const {
    return static_cast<int64_t>(role) * static_cast<int64_t>(params_.size()) + place_[static_cast<size_t>(id)];
  }
  int64_t units_in_passes() const { return 2 * static_cast<int64_t>(params_.size()); }  // inputs and gradients
  Tensor met_in_passes() const { return met.rows(0, units_in_passes()); }
  Tensor met_in_update() const { return met.rows(units_in_passes(), units()); }

  Tensor scale(ParamId id, Fp8Role role) const { return row(scales, id, role).viewed({kFp8Scale}); }
  Tensor seen(ParamId id, Fp8Role role) const { return row(met, id, role).viewed({kFp8Seen}); }

  // Before a new run: no history. tokens: of a step, whose losses are averaged, so gradients are of the order of 1 / tokens.
  void start(Ops& ops, int64_t tokens) const;
  // The same of inputs and gradients alone; nothing else changes.
  void start_passes(Ops& ops, int64_t tokens) const;

  Tensor scales;   // (units, kFp8Scale)
  Tensor history;  // (units, kFp8History)
  Tensor met;      // (units, kFp8Seen): by this rank, in the passes of a step and in the update before
  Tensor limit;    // (units): half of the largest value of the type, so that a value may double within a step
  Tensor step;     // (kAdamwStep): whose number tells the place in the history

 private:
  Tensor row(const Tensor& t, ParamId id, Fp8Role role) const { return t.rows(unit(id, role), unit(id, role) + 1); }

  std::vector<ParamId> params_;
  std::vector<int64_t> place_;  // by parameter
  DType gradient_ = DType::f8e5m2;
};

}  // namespace hlat
