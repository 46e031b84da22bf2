#include "nn/mlp.h"

#include "nn/output_std.h"

namespace hlat {

void Mlp::declare(ParamBuilder& params, const std::string& prefix, const ModelConfig& model) {
  const Part share = params.tp_part(model.ffn);
  ffn = share.count;
  gate_up.declare_columns(params, prefix + ".gate_up", 2 * model.ffn, model.hidden,
                          {{.global = share.begin, .count = ffn}, {.global = model.ffn + share.begin, .count = ffn}}, model.init_std);
  down.declare_rows(params, prefix + ".down", model.hidden, model.ffn, share, output_std(model));
  gate_up.coalesced = model.coalesced;
}

void Mlp::forward(Ctx& ctx, Tensor x, Tensor residual, Tensor y) const {
  const TapeOutput gu = ctx.tape.output(BlockOp::gate_up, 0, ctx.act(), {ctx.tokens(), 2 * ffn});
  if (gu.stale) {
    const Scope scope(ctx.temp());
    const Tensor out = ctx.wide(gu.tensor);
    gate_up.product_columns(ctx, x, out);
    ctx.store(gu.tensor, out, {.name = "gate_up", .columns = gate_up.outputs(ctx)});
  }
  const TapeOutput product = ctx.tape.output(BlockOp::swiglu, 0, ctx.act(), {ctx.tokens(), ffn});
  if (product.stale) {
    const Scope scope(ctx.temp());
    const Tensor out = ctx.wide(product.tensor);
    ctx.ops.swiglu(out, ctx.widened(gu.tensor));
    ctx.store(product.tensor, out, {.name = "swiglu", .columns = down.inputs(ctx)});
  }
  if (y.defined()) down.forward_add(ctx, product.tensor, residual, y, "mlp");
}

void Mlp::backward(Ctx& ctx, Tensor x, Tensor dy, Tensor dx) const {
  const Scope scope(ctx.temp());
  const Tensor dgu = ctx.temp({ctx.tokens(), 2 * ffn}, "dgate_up");
  {
    const Scope inner(ctx.temp());
    dy = ctx.enter(dy);
    down.backward_weight(ctx, ctx.tape.at(BlockOp::swiglu), dy);
    const Tensor dproduct = ctx.temp({ctx.tokens(), ffn}, "dswiglu");
    down.backward_input(ctx, dy, dproduct, {.name = "dswiglu", .columns = down.inputs(ctx)});
    const Tensor out = ctx.wide(dgu);
    ctx.ops.swiglu_bwd(out, ctx.widened(dproduct), ctx.widened(ctx.tape.at(BlockOp::gate_up)));
    ctx.store(dgu, out, {.name = "dgate_up", .columns = gate_up.outputs(ctx)});
  }
  gate_up.backward_column_split(ctx, x, dgu, dx, "dmlp input");
}

}  // namespace hlat
