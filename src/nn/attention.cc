#include "nn/attention.h"

#include <cmath>

namespace hlat {

void Attention::declare(ParamBuilder& params, const std::string& prefix, const ModelConfig& model) {
  const int64_t head = model.head_dim();
  qkv.declare(params, prefix + ".qkv", (model.heads + 2 * model.kv()) * head, model.hidden, model.init_std);
  output.declare(params, prefix + ".output", model.hidden, model.heads * head,
                 model.init_std / std::sqrt(2.0 * static_cast<double>(model.layers)));
}

void Attention::forward(Ctx& ctx, Tensor x, Tensor y) const {
  const AttentionShape& s = ctx.attention;
  const Slot packed = ctx.tape.slot(BlockOp::qkv, 0, ctx.act(), {s.tokens(), s.qkv_width()});
  if (packed.stale) {
    qkv.forward(ctx, x, packed.tensor);
    ctx.ops.rope(packed.tensor, ctx.rope, s, +1);
  }
  const Slot out = ctx.tape.slot(BlockOp::attention, 0, ctx.act(), {s.tokens(), s.out_width()});
  const Slot lse = ctx.tape.slot(BlockOp::attention, 1, ctx.stat(), {s.batch, s.heads, s.seq});
  if (out.stale) ctx.ops.attention(out.tensor, lse.tensor, packed.tensor, s);
  if (y.defined()) output.forward(ctx, out.tensor, y);
}

void Attention::backward(Ctx& ctx, Tensor x, Tensor dy, Tensor dx) const {
  const AttentionShape& s = ctx.attention;
  const Scope scope(ctx.temp());
  const Tensor out = ctx.tape.at(BlockOp::attention, 0);
  const Tensor dqkv = ctx.temp({s.tokens(), s.qkv_width()}, "dqkv");
  output.backward_weight(ctx, out, dy);
  {
    const Scope inner(ctx.temp());
    const Tensor dout = ctx.temp({s.tokens(), s.out_width()}, "dattention");
    output.backward_input(ctx, dy, dout);
    ctx.ops.attention_bwd(dqkv, dout, out, ctx.tape.at(BlockOp::attention, 1), ctx.tape.at(BlockOp::qkv), s);
  }
  ctx.ops.rope(dqkv, ctx.rope, s, -1);
  qkv.backward_weight(ctx, x, dqkv);
  qkv.backward_input(ctx, dqkv, dx);
}

}  // namespace hlat
