#include "optim/adamw.h"

namespace hlat {

void AdamW::measure(Ops& ops, const ParamStore& params, const OptimScalars& s) const {
  for (ParamId id = 0; id < params.size(); ++id) ops.sum_squares(s.grad_sq.rows(id, id + 1), params.grad(id));
  ops.clip_scale(s.scale, s.grad_sq, config.clip);
}

void AdamW::update(Ops& ops, const ParamStore& params, const OptimScalars& s, double lr, int64_t step) const {
  for (ParamId id = 0; id < params.size(); ++id) {
    const ParamSpec& spec = params.spec(id);
    const AdamwTensors tensors{.weight = params.weight(id),
                               .master = params.master(id),
                               .m = params.moment1(id),
                               .v = params.moment2(id),
                               .grad = params.grad(id),
                               .scale = s.scale,
                               .weight_sq = s.weight_sq.rows(id, id + 1)};
    const AdamwScalars scalars{.lr = static_cast<float>(lr),
                               .beta1 = static_cast<float>(config.beta1),
                               .beta2 = static_cast<float>(config.beta2),
                               .eps = static_cast<float>(config.eps),
                               .weight_decay = spec.decay ? static_cast<float>(config.weight_decay) : 0.0f,
                               .step = step,
                               .rounding = params.precision().stochastic ? Rounding::stochastic : Rounding::nearest,
                               .seed = seed,
                               .stream = hash_name(spec.name),
                               .first_element = 0};
    ops.adamw(tensors, scalars);
  }
}

}  // namespace hlat
