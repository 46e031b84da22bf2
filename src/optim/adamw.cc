#include "optim/adamw.h"

#include <algorithm>

namespace hlat {

void AdamW::begin_step(Device& device, const OptimScalars& s, double lr, int64_t step) const {
  const AdamwStep values = AdamwStep::of(lr, step, static_cast<float>(config_.beta1), static_cast<float>(config_.beta2));
  device.upload(s.step, &values);
}

void AdamW::measure(Ops& ops, const ParamStore& params, const OptimScalars& s, Tensor total) const {
  std::vector<Tensor> grads;
  for (const UpdateUnit& u : params.units()) grads.push_back(u.tensors.grad);
  ops.sum_squares(s.grad_sq, grads);
  ops.sum(total, s.grad_sq.rows(0, params.counted_units()));
}

AdamwItem AdamW::item(const ParamStore& params, const OptimScalars& s, int64_t unit, bool measured) const {
  const UpdateUnit& u = params.units()[static_cast<size_t>(unit)];
  const ParamSpec& spec = params.spec(u.param);
  const Precision& p = params.precision();
  AdamwTensors tensors = u.tensors;
  tensors.scale = s.scale;
  tensors.step = s.step;
  tensors.weight_sq = s.weight_sq.rows(unit, unit + 1);
  if (measured) tensors.change = s.change.rows(unit, unit + 1).viewed({kAdamwChange});
  const AdamwScalars scalars{.beta1 = static_cast<float>(config_.beta1),
                             .beta2 = static_cast<float>(config_.beta2),
                             .eps = static_cast<float>(config_.eps),
                             .weight_decay = spec.decay ? static_cast<float>(config_.weight_decay) : 0.0f,
                             .round_weights = p.weights,
                             .round_moments = p.moments,
                             .seed = seed_,
                             .stream = noise_stream(p, spec.name, rank_),
                             .map = u.map};
  return {tensors, scalars};
}

void AdamW::update(Ops& ops, const ParamStore& params, const OptimScalars& s, int bucket, bool measured) const {
  std::vector<AdamwItem> items;
  for (int64_t i = 0; i < static_cast<int64_t>(params.units().size()); ++i)
    if (params.units()[static_cast<size_t>(i)].bucket == bucket) items.push_back(item(params, s, i, measured));
  ops.adamw(items);
}

void AdamW::reserve_measured(Ops& ops, const ParamStore& params, Region& temp) const {
  std::vector<size_t> bytes(params.buckets().size());
  for (const UpdateUnit& u : params.units())
    bytes[static_cast<size_t>(u.bucket)] += ops.reduce_scratch(u.tensors.weight.numel()) * static_cast<size_t>(1 + kAdamwChange);
  const Scope scope(temp);
  const size_t most = bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
  if (most > 0) temp.alloc(DType::f64, {static_cast<int64_t>((most + sizeof(double) - 1) / sizeof(double))}, "scratch of a measured adamw");
}

}  // namespace hlat
