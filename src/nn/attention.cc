#include "nn/attention.h"

#include "nn/holder_sum.h"
#include "nn/narrow_attention.h"
#include "nn/output_std.h"

namespace hlat {

void Attention::declare(ParamBuilder& params, const std::string& prefix, const ModelConfig& model) {
  const int64_t head = model.head_dim();
  const HeadShare& share = params.mesh().heads();
  const auto rows = [&](int64_t first_head, const Part& heads) {
    return SlicePart{.global = (first_head + heads.begin) * head, .count = heads.count * head};
  };
  qkv.declare_columns(params, prefix + ".qkv", (model.heads + 2 * model.kv()) * head, model.hidden,
                      {rows(0, share.q), rows(model.heads, share.kv), rows(model.heads + model.kv(), share.kv)}, model.init_std);
  params.share(qkv.weight, Axis::kv, SharedGrad::partial, share.q.count * head);  // each holder has its own query heads
  output.declare_rows(params, prefix + ".output", model.hidden, model.heads * head, {share.q.begin * head, share.q.count * head},
                      output_std(model));
  qkv.coalesced = model.coalesced;
  params.multiply_in_fp8(qkv.weight);
  params.multiply_in_fp8(output.weight);
}

void Attention::forward(Ctx& ctx, const Operand& x, Tensor y) const {
  const AttentionShape& s = ctx.attention;
  const TapeOutput packed = ctx.tape.output(BlockOp::qkv, 0, ctx.act(), {s.tokens(), s.qkv_width()});
  if (packed.stale) {
    const Scope scope(ctx.temp());
    const Tensor rotated = ctx.wide(packed.tensor);
    qkv.product_columns(ctx, x, rotated);
    if (ctx.kv == nullptr) ctx.ops.rope(rotated, ctx.rope, s, +1);
    ctx.store(packed.tensor, rotated, {.name = "qkv", .columns = qkv.outputs(ctx)});
  }
  const TapeOutput out = ctx.tape.output(BlockOp::attention, 0, ctx.act(), {s.tokens(), s.out_width()});
  if (ctx.kv != nullptr) {
    attend_cached(ctx, packed.tensor, out.tensor);
  } else {
    const TapeOutput lse = ctx.tape.output(BlockOp::attention, 1, ctx.stat(), {s.batch, s.heads, s.seq});
    if (out.stale) attend(ctx, packed.tensor, out.tensor, lse.tensor);
    if (ctx.watch != nullptr) watch_scores(ctx, packed.tensor, lse.tensor);
  }
  if (!y.defined()) return;
  const Scope scope(ctx.temp());
  output.forward_sum(ctx, output.forward_input(ctx, out.tensor), y, "attention output");
}

void Attention::attend(Ctx& ctx, Tensor packed, Tensor out, Tensor lse) const {
  const Scope scope(ctx.temp());
  const Tensor wide = ctx.wide(out);
  if (const PlantedAttention* planted = ctx.planted_here())
    planted->forward(wide, lse, packed, ctx.attention);
  else if (ctx.precision().softmax == DType::bf16)
    narrow_attention(ctx, wide, lse, packed);
  else
    ctx.ops.attention(wide, lse, ctx.widened(packed), ctx.attention);
  ctx.store(out, wide, {.name = "attention", .columns = output.inputs(ctx)});
}

// The last query sees every key. Query heads of one kv head lie side by side, and so are the rows of one product.
void Attention::watch_scores(Ctx& ctx, Tensor packed, Tensor lse) {
  const auto place = [&](const Tensor& all) { return all.rows(ctx.layer, ctx.layer + 1); };
  if (ctx.watch->lse.defined()) ctx.ops.largest(place(ctx.watch->lse), lse, false);
  if (!ctx.watch->score.defined()) return;
  const AttentionShape& s = ctx.attention;
  const int64_t group = s.heads / s.kv_heads, width = s.qkv_width();
  const auto view = [&](int64_t row, int64_t column, int64_t rows, int64_t stride) {
    Tensor t = packed.rows(row, row + 1);
    if (t.data != nullptr) t.data = static_cast<std::byte*>(t.data) + column * static_cast<int64_t>(size_of(t.dtype));
    t.shape = {rows, s.head_dim};
    t.stride[0] = stride;
    return t;
  };
  const Scope scope(ctx.temp());
  const Tensor scores = ctx.temp().alloc(ctx.stat(), {group, s.seq}, "scores of a probe");
  for (int64_t k = 0; k < s.kv_heads; ++k) {
    const Tensor queries = view(s.seq - 1, k * group * s.head_dim, group, s.head_dim),
                 keys = view(0, (s.heads + k) * s.head_dim, s.seq, width);
    ctx.ops.matmul(scores, queries, keys, {.trans_b = true});
    ctx.ops.largest(place(ctx.watch->score), scores, false);
  }
}

// Keys and values of all tokens of the pass are in the cache before any query looks there.
void Attention::attend_cached(Ctx& ctx, Tensor packed, Tensor out) {
  const KvPass& kv = *ctx.kv;
  const Tensor cache = kv.layers[static_cast<size_t>(ctx.layer)];
  ctx.ops.cache_append(cache, packed, ctx.rope, kv.positions, kv.slots, kv.shape);
  ctx.ops.cache_attention(out, packed, cache, kv.segments, kv.shape);
}

void Attention::backward(Ctx& ctx, Tensor x, Tensor dy, Tensor dx) const {
  const AttentionShape& s = ctx.attention;
  const Scope scope(ctx.temp());
  const Tensor out = ctx.tape.at(BlockOp::attention, 0);
  const Tensor dqkv = ctx.temp({s.tokens(), s.qkv_width()}, "dqkv");
  {
    const Scope inner(ctx.temp());
    const Operand dsum = output.gradient(ctx, dy);
    {
      const Scope form(ctx.temp());
      output.backward_weight(ctx, output.backward_input_form(ctx, out), dsum);
    }
    const Tensor dout = ctx.temp({s.tokens(), s.out_width()}, "dattention");
    output.backward_input(ctx, dsum, dout, {.name = "dattention", .columns = output.inputs(ctx)});
    const Tensor wide = ctx.wide(dqkv), packed = ctx.tape.at(BlockOp::qkv), lse = ctx.tape.at(BlockOp::attention, 1);
    if (const PlantedAttention* planted = ctx.planted_here()) {
      planted->backward(wide, dout, packed, s);
      ctx.ops.rope(wide, ctx.rope, s, -1);
    } else if (ctx.precision().softmax == DType::bf16) {
      narrow_attention_bwd(ctx, wide, dout, packed);
    } else {
      ctx.ops.attention_bwd(wide, ctx.widened(dout), ctx.widened(out), lse, ctx.widened(packed), s, ctx.rope);
    }
    ctx.store(dqkv, wide, {.name = "dqkv", .columns = qkv.outputs(ctx)});
  }
  if (qkv.fp8(ctx)) sum_over_holders(ctx, dqkv);
  qkv.backward_column_split(ctx, qkv.kept(ctx, x), qkv.gradient(ctx, dqkv), dx, "dattention input");
}

}  // namespace hlat
