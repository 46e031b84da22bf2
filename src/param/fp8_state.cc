#include "param/fp8_state.h"

#include <cmath>

#include "base/fp8.h"

namespace hlat {

namespace {

// Inputs of linear layers are outputs of norms, of attention and of SwiGLU: of the order of 1, up to the root of the width.
constexpr double kFirstInputScale = 4, kFirstGradientScale = 16;

void set_scale(Ops& ops, const Tensor& scale, double value) {
  ops.fill(scale.rows(0, kFp8Inverse), value);
  ops.fill(scale.rows(kFp8Inverse, kFp8Scale), 1 / value);
}

}  // namespace

std::string_view name_of(Fp8Role role) {
  switch (role) {
    case Fp8Role::input: return "input";
    case Fp8Role::gradient: return "gradient";
    case Fp8Role::weight: return "weight";
  }
  return "?";
}

Fp8State::Fp8State(const std::vector<ParamSpec>& specs, const Precision& precision, Region& region)
    : place_(specs.size(), -1), gradient_(precision.fp8_grad) {
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].fp8) continue;
    place_[i] = static_cast<int64_t>(params_.size());
    params_.push_back(static_cast<ParamId>(i));
  }
  scales = region.alloc(DType::f32, {units(), kFp8Scale}, "FP8 scales");
  history = region.alloc(DType::f32, {units(), kFp8History}, "FP8 history");
  met = region.alloc(DType::f64, {units(), kFp8Seen}, "FP8 values seen");
  limit = region.alloc(DType::f32, {units()}, "FP8 limits");
  step = region.alloc(DType::f64, {kAdamwStep}, "FP8 step");
}

void Fp8State::start(Ops& ops, int64_t tokens) const {
  ops.fill(history, 0);
  ops.fill(met, 0);
  start_passes(ops, tokens);
  for (const ParamId id : params_) {
    set_scale(ops, scale(id, Fp8Role::weight), kFirstInputScale);
    for (const Fp8Role role : {Fp8Role::input, Fp8Role::gradient, Fp8Role::weight}) {
      const float largest = role == Fp8Role::gradient && gradient_ == DType::f8e5m2 ? kLargestE5M2 : kLargestE4M3;
      ops.fill(limit.rows(unit(id, role), unit(id, role) + 1), static_cast<double>(largest) / 2);
    }
  }
}

void Fp8State::start_passes(Ops& ops, int64_t tokens) const {
  ops.fill(history.rows(0, units_in_passes()), 0);
  ops.fill(met_in_passes(), 0);
  const double per_token = std::exp2(std::floor(std::log2(static_cast<double>(tokens))));
  for (const ParamId id : params_) {
    set_scale(ops, scale(id, Fp8Role::input), kFirstInputScale);
    set_scale(ops, scale(id, Fp8Role::gradient), kFirstGradientScale * per_token);
  }
}

}  // namespace hlat
