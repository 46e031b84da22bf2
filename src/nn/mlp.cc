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
  params.multiply_in_fp8(gate_up.weight);
  params.multiply_in_fp8(down.weight);
}

void Mlp::forward(Ctx& ctx, const Operand& x, Tensor residual, Tensor y) const {
  const TapeOutput gu = ctx.tape.output(BlockOp::gate_up, 0, ctx.act(), {ctx.tokens(), 2 * ffn});
  if (gu.stale) {
    const Scope scope(ctx.temp());
    const Tensor out = ctx.wide(gu.tensor);
    gate_up.product_columns(ctx, x, out);
    ctx.store(gu.tensor, out, {.name = "gate_up", .columns = gate_up.outputs(ctx)});
  }
  const OperandPlace product = down.input_place(ctx, BlockOp::swiglu, ctx.tokens(), y.defined());
  if (product.stale && product.fp8()) {
    ctx.ops.swiglu_fp8(product.store, product.operand.wide, gu.tensor);
  } else if (product.stale) {
    const Scope scope(ctx.temp());
    const Tensor out = ctx.wide(product.operand.wide);
    ctx.ops.swiglu(out, ctx.widened(gu.tensor));
    ctx.store(product.operand.wide, out, {.name = "swiglu", .columns = down.inputs(ctx)});
  }
  if (y.defined()) down.forward_add(ctx, product.operand, residual, y, "mlp");
}

void Mlp::backward(Ctx& ctx, Tensor x, Tensor dy, Tensor dx) const {
  const Scope scope(ctx.temp());
  const OperandPlace dgu = gate_up.gradient_place(ctx, ctx.tokens());
  {
    const Scope inner(ctx.temp());
    const Operand dout = down.gradient(ctx, dy);
    down.backward_weight(ctx, down.kept(ctx, ctx.tape.at(BlockOp::swiglu)), dout);
    const Tensor dproduct = ctx.temp({ctx.tokens(), ffn}, "dswiglu");
    down.backward_input(ctx, dout, dproduct, {.name = "dswiglu", .columns = down.inputs(ctx)});
    swiglu_backward(ctx, dgu, dproduct);
  }
  gate_up.backward_column_split(ctx, gate_up.kept(ctx, x), dgu.operand, dx, "dmlp input");
}

void Mlp::swiglu_backward(Ctx& ctx, const OperandPlace& dgu, Tensor dproduct) const {
  const Tensor gu = ctx.tape.at(BlockOp::gate_up);
  if (dgu.fp8()) return ctx.ops.swiglu_bwd_fp8(dgu.store, dgu.operand.wide, dproduct, gu);
  const Scope scope(ctx.temp());
  const Tensor out = ctx.wide(dgu.operand.wide);
  ctx.ops.swiglu_bwd(out, ctx.widened(dproduct), ctx.widened(gu));
  ctx.store(dgu.operand.wide, out, {.name = "dgate_up", .columns = gate_up.outputs(ctx)});
}

}  // namespace hlat
