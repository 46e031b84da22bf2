#include "optim/adamw.h"

namespace hlat {

void AdamW::measure(Ops& ops, const ParamStore& params, const OptimScalars& s, Tensor total) const {
  const auto& units = params.units();
  for (int64_t i = 0; i < static_cast<int64_t>(units.size()); ++i)
    ops.sum_squares(s.grad_sq.rows(i, i + 1), units[static_cast<size_t>(i)].tensors.grad);
  ops.sum(total, s.grad_sq.rows(0, params.counted_units()));
}

void AdamW::update(Ops& ops, const ParamStore& params, const OptimScalars& s, int64_t unit, double lr, int64_t step) const {
  const UpdateUnit& u = params.units()[static_cast<size_t>(unit)];
  const ParamSpec& spec = params.spec(u.param);
  AdamwTensors tensors = u.tensors;
  tensors.scale = s.scale;
  tensors.weight_sq = s.weight_sq.rows(unit, unit + 1);
  const AdamwScalars scalars{.lr = static_cast<float>(lr),
                             .beta1 = static_cast<float>(config.beta1),
                             .beta2 = static_cast<float>(config.beta2),
                             .eps = static_cast<float>(config.eps),
                             .weight_decay = spec.decay ? static_cast<float>(config.weight_decay) : 0.0f,
                             .step = step,
                             .rounding = params.precision().stochastic ? Rounding::stochastic : Rounding::nearest,
                             .seed = seed,
                             .stream = hash_name(spec.name),
                             .map = u.map};
  ops.adamw(tensors, scalars);
}

}  // namespace hlat
