#include "nn/narrow_attention.h"

#include <cmath>

#include "tensor/columns.h"

namespace hlat {
namespace {

// One query head of one sequence.
struct HeadViews {
  AttentionShape shape;
  int64_t sequence = 0, head = 0;

  int64_t group() const { return shape.heads / shape.kv_heads; }
  int64_t kv_head() const { return head / group(); }
  bool first_of_group() const { return head % group() == 0; }
  // Column block `index` of the sequence's rows.
  Tensor block(const Tensor& t, int64_t index) const {
    return columns(t.rows(sequence * shape.seq, (sequence + 1) * shape.seq), index * shape.head_dim, (index + 1) * shape.head_dim);
  }
  Tensor q(const Tensor& qkv) const { return block(qkv, head); }
  Tensor k(const Tensor& qkv) const { return block(qkv, shape.heads + kv_head()); }
  Tensor v(const Tensor& qkv) const { return block(qkv, shape.heads + shape.kv_heads + kv_head()); }
};

template <class Body>
void each_head(const AttentionShape& s, const Body& body) {
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h) body(HeadViews{.shape = s, .sequence = b, .head = h});
}

// The softmax of one head, (T, T).
void probabilities(Ctx& ctx, const HeadViews& views, Tensor qkv, Tensor p, Tensor lse) {
  ctx.ops.matmul(p, views.q(qkv), views.k(qkv), {.trans_b = true});
  ctx.ops.narrow_softmax(p, lse, p, 1.0 / std::sqrt(static_cast<double>(views.shape.head_dim)));
}

}  // namespace

void narrow_attention(Ctx& ctx, Tensor out, Tensor lse, Tensor qkv) {
  const AttentionShape& s = ctx.attention;
  const Scope scope(ctx.temp());
  const Tensor p = ctx.temp({s.seq, s.seq}, "attention weights"), stats = lse.viewed({s.batch * s.heads * s.seq});
  each_head(s, [&](const HeadViews& views) {
    const int64_t row = (views.sequence * s.heads + views.head) * s.seq;
    probabilities(ctx, views, qkv, p, stats.rows(row, row + s.seq));
    ctx.ops.matmul(views.block(out, views.head), p, views.v(qkv), {});
  });
}

void narrow_attention_bwd(Ctx& ctx, Tensor dqkv, Tensor dout, Tensor qkv) {
  const AttentionShape& s = ctx.attention;
  const Scope scope(ctx.temp());
  const Tensor p = ctx.temp({s.seq, s.seq}, "attention weights"), dp = ctx.temp({s.seq, s.seq}, "gradient of attention weights");
  const Tensor lse = ctx.temp().alloc(ctx.stat(), {s.seq}, "log-sum-exp");
  each_head(s, [&](const HeadViews& views) {
    const Tensor d = views.block(dout, views.head);
    const bool adds = !views.first_of_group();  // query heads of one kv head add up
    probabilities(ctx, views, qkv, p, lse);
    ctx.ops.matmul(views.v(dqkv), p, d, {.trans_a = true, .accumulate = adds});
    ctx.ops.matmul(dp, d, views.v(qkv), {.trans_b = true});
    ctx.ops.narrow_softmax_bwd(dp, dp, p, 1.0 / std::sqrt(static_cast<double>(s.head_dim)));
    ctx.ops.matmul(views.q(dqkv), dp, views.k(qkv), {});
    ctx.ops.matmul(views.k(dqkv), dp, views.q(qkv), {.trans_a = true, .accumulate = adds});
  });
  ctx.ops.rope(dqkv, ctx.rope, s, -1);
}

}  // namespace hlat
