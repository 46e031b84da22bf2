#include "nn/attention.h"

#include <cmath>

namespace hlat {

void Attention::declare(ParamBuilder& params, const std::string& prefix, const ModelConfig& model) {
  const int64_t head = model.head_dim();
  const HeadShare& share = params.mesh().heads();
  const bool counts_kv = params.mesh().along(Axis::kv).rank() == 0;
  const auto rows = [&](int64_t first_head, const Part& heads, bool counted) {
    return SlicePart{.global = (first_head + heads.begin) * head, .count = heads.count * head, .counted = counted};
  };
  qkv.declare_columns(params, prefix + ".qkv", (model.heads + 2 * model.kv()) * head, model.hidden,
                      {rows(0, share.q, true), rows(model.heads, share.kv, counts_kv), rows(model.heads + model.kv(), share.kv, counts_kv)},
                      model.init_std);
  if (params.mesh().along(Axis::kv).size() > 1) params.spec(qkv.weight).kv_shared_from = share.q.count * head;
  output.declare_rows(params, prefix + ".output", model.hidden, model.heads * head, {share.q.begin * head, share.q.count * head},
                      model.init_std / std::sqrt(2.0 * static_cast<double>(model.layers)));
}

void Attention::forward(Ctx& ctx, Tensor x, Tensor y) const {
  const AttentionShape& s = ctx.attention;
  const TapeOutput packed = ctx.tape.output(BlockOp::qkv, 0, ctx.act(), {s.tokens(), s.qkv_width()});
  if (packed.stale) {
    const Scope scope(ctx.temp());
    qkv.forward(ctx, ctx.enter(x), packed.tensor);
    ctx.ops.rope(packed.tensor, ctx.rope, s, +1);
  }
  const TapeOutput out = ctx.tape.output(BlockOp::attention, 0, ctx.act(), {s.tokens(), s.out_width()});
  const TapeOutput lse = ctx.tape.output(BlockOp::attention, 1, ctx.stat(), {s.batch, s.heads, s.seq});
  if (out.stale) ctx.ops.attention(out.tensor, lse.tensor, packed.tensor, s);
  if (y.defined()) output.forward_sum(ctx, out.tensor, y);
}

void Attention::backward(Ctx& ctx, Tensor x, Tensor dy, Tensor dx) const {
  const AttentionShape& s = ctx.attention;
  const Scope scope(ctx.temp());
  const Tensor out = ctx.tape.at(BlockOp::attention, 0);
  const Tensor dqkv = ctx.temp({s.tokens(), s.qkv_width()}, "dqkv");
  {
    const Scope inner(ctx.temp());
    dy = ctx.enter(dy);
    output.backward_weight(ctx, out, dy);
    const Tensor dout = ctx.temp({s.tokens(), s.out_width()}, "dattention");
    output.backward_input(ctx, dy, dout);
    ctx.ops.attention_bwd(dqkv, dout, out, ctx.tape.at(BlockOp::attention, 1), ctx.tape.at(BlockOp::qkv), s, ctx.rope);
  }
  qkv.backward_column_split(ctx, x, dqkv, dx);
}

}  // namespace hlat
