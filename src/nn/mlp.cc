#include "nn/mlp.h"

#include <cmath>

namespace hlat {

void Mlp::declare(ParamBuilder& params, const std::string& prefix, const ModelConfig& model) {
  ffn = model.ffn;
  gate_up.declare(params, prefix + ".gate_up", 2 * ffn, model.hidden, model.init_std);
  down.declare(params, prefix + ".down", model.hidden, ffn, model.init_std / std::sqrt(2.0 * static_cast<double>(model.layers)));
}

void Mlp::forward(Ctx& ctx, Tensor x, Tensor y) const {
  const Slot gu = ctx.tape.slot(BlockOp::gate_up, 0, ctx.act(), {ctx.tokens(), 2 * ffn});
  if (gu.stale) gate_up.forward(ctx, x, gu.tensor);
  const Slot product = ctx.tape.slot(BlockOp::swiglu, 0, ctx.act(), {ctx.tokens(), ffn});
  if (product.stale) ctx.ops.swiglu(product.tensor, gu.tensor);
  if (y.defined()) down.forward(ctx, product.tensor, y);
}

void Mlp::backward(Ctx& ctx, Tensor x, Tensor dy, Tensor dx) const {
  const Scope scope(ctx.temp());
  down.backward_weight(ctx, ctx.tape.at(BlockOp::swiglu), dy);
  const Tensor dgu = ctx.temp({ctx.tokens(), 2 * ffn}, "dgate_up");
  {
    const Scope inner(ctx.temp());
    const Tensor dproduct = ctx.temp({ctx.tokens(), ffn}, "dswiglu");
    down.backward_input(ctx, dy, dproduct);
    ctx.ops.swiglu_bwd(dgu, dproduct, ctx.tape.at(BlockOp::gate_up));
  }
  gate_up.backward_weight(ctx, x, dgu);
  gate_up.backward_input(ctx, dgu, dx);
}

}  // namespace hlat
