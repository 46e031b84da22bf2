#include "nn/mlp.h"

#include <cmath>

namespace hlat {

void Mlp::declare(ParamBuilder& params, const std::string& prefix, const ModelConfig& model) {
  const Part share = params.tp_part(model.ffn);
  ffn = share.count;
  gate_up.declare_columns(params, prefix + ".gate_up", 2 * model.ffn, model.hidden,
                          {{.global = share.begin, .count = ffn}, {.global = model.ffn + share.begin, .count = ffn}}, model.init_std);
  down.declare_rows(params, prefix + ".down", model.hidden, model.ffn, share,
                    model.init_std / std::sqrt(2.0 * static_cast<double>(model.layers)));
}

void Mlp::forward(Ctx& ctx, Tensor x, Tensor residual, Tensor y) const {
  const TapeOutput gu = ctx.tape.output(BlockOp::gate_up, 0, ctx.act(), {ctx.tokens(), 2 * ffn});
  if (gu.stale) {
    const Scope scope(ctx.temp());
    gate_up.forward(ctx, ctx.enter(x), gu.tensor);
  }
  const TapeOutput product = ctx.tape.output(BlockOp::swiglu, 0, ctx.act(), {ctx.tokens(), ffn});
  if (product.stale) ctx.ops.swiglu(product.tensor, gu.tensor);
  if (y.defined()) down.forward_add(ctx, product.tensor, residual, y);
}

void Mlp::backward(Ctx& ctx, Tensor x, Tensor dy, Tensor dx) const {
  const Scope scope(ctx.temp());
  const Tensor dgu = ctx.temp({ctx.tokens(), 2 * ffn}, "dgate_up");
  {
    const Scope inner(ctx.temp());
    dy = ctx.enter(dy);
    down.backward_weight(ctx, ctx.tape.at(BlockOp::swiglu), dy);
    const Tensor dproduct = ctx.temp({ctx.tokens(), ffn}, "dswiglu");
    down.backward_input(ctx, dy, dproduct);
    ctx.ops.swiglu_bwd(dgu, dproduct, ctx.tape.at(BlockOp::gate_up));
  }
  gate_up.backward_column_split(ctx, x, dgu, dx);
}

}  // namespace hlat
