// The front of the op set, on null ops: broken contracts are refused with their values, costs are counted, scratch is
// taken from the temp region for the length of one call.
#include <gtest/gtest.h>

#include <functional>

#include "backend/null/null_ops.h"
#include "support/adamw_call.h"
#include "support/refused_calls.h"
#include "tensor/columns.h"

namespace hlat {
namespace {

Tensor t32(const Shape& shape) { return Tensor::contiguous(nullptr, DType::f32, shape); }
Tensor t16(const Shape& shape) { return Tensor::contiguous(nullptr, DType::bf16, shape); }
Tensor t64(const Shape& shape) { return Tensor::contiguous(nullptr, DType::f64, shape); }
Tensor ids(int64_t n) { return Tensor::contiguous(nullptr, DType::i32, {n}); }

constexpr AttentionShape kAttention{.batch = 2, .seq = 3, .heads = 4, .kv_heads = 2, .head_dim = 2};  // N = 6, width 16

// Two segments of at most 3 queries over at most 5 keys, in all 10 pairs.
constexpr CacheShape kCache{.heads = 4, .kv_heads = 2, .head_dim = 2, .max_queries = 3, .max_keys = 5, .pairs = 10};
Tensor segments(int64_t n) { return Tensor::contiguous(nullptr, DType::i32, {n, kKvSegment}); }

AdamwTensors adamw_tensors(DType weight, DType moment, bool master) {
  const auto of = [](DType t) { return Tensor::contiguous(nullptr, t, {5}); };
  return {.weight = of(weight),
          .master = master ? t32({5}) : Tensor{},
          .m = of(moment),
          .v = of(moment),
          .grad = t32({5}),
          .scale = t32({1}),
          .step = t64({kAdamwStep}),
          .weight_sq = t64({1}),
          .change = {}};
}

TEST(OpsFront, RefusesBrokenContracts) {
  const std::vector<RefusedCall> calls = {
      {"embed: y is f32(3, 4), expected shape (2, 4)",
       [](Ops& o) {
         o.embed(t32({3, 4}), ids(2), t32({9, 4}), 0);
       }},
      {"embed: ids is f32(2), expected i32",
       [](Ops& o) {
         o.embed(t32({2, 4}), t32({2}), t32({9, 4}), 0);
       }},
      {"embed_bwd: dtable bf16(9, 4), dy f32(2, 4)",
       [](Ops& o) {
         o.embed_bwd(t16({9, 4}), ids(2), t32({2, 4}), 0);
       }},
      {"embed: first -1",
       [](Ops& o) {
         o.embed(t32({2, 4}), ids(2), t32({9, 4}), -1);
       }},
      {"embed_bwd: first -2",
       [](Ops& o) {
         o.embed_bwd(t32({9, 4}), ids(2), t32({2, 4}), -2);
       }},
      {"matmul: c f32(2, 3), a f32(2, 4), b f32(5, 3)",
       [](Ops& o) {
         o.matmul(t32({2, 3}), t32({2, 4}), t32({5, 3}), {});
       }},
      {"matmul: c bf16(2, 3), a f32(2, 4)",
       [](Ops& o) {
         o.matmul(t16({2, 3}), t32({2, 4}), t32({4, 3}), {});
       }},
      {"matmul: c f32(2, 3), a f32(2, 4)^T",
       [](Ops& o) {
         o.matmul(t32({2, 3}), t32({2, 4}), t32({4, 3}), {.trans_a = true});
       }},
      {"rmsnorm: rstd is bf16(2), expected f32",
       [](Ops& o) {
         o.rmsnorm(t16({2, 4}), t16({2}), t16({2, 4}), t16({4}), 1e-5);
       }},
      {"rmsnorm: w is f32(4), expected bf16",
       [](Ops& o) {
         o.rmsnorm(t16({2, 4}), t32({2}), t16({2, 4}), t32({4}), 1e-5);
       }},
      {"rmsnorm: x is f32(2, 4), expected contiguous",
       [](Ops& o) {
         o.rmsnorm(t32({2, 4}), t32({2}), columns(t32({2, 5}), 0, 4), t32({4}), 1e-5);
       }},
      {"add_rmsnorm: delta is f32(2, 5)",
       [](Ops& o) {
         o.add_rmsnorm(t32({2, 4}), t32({2, 4}), t32({2}), t32({2, 4}), t32({2, 5}), t32({4}), 0);
       }},
      {"rmsnorm_bwd: dw bf16(4), x f32(2, 4)",
       [](Ops& o) {
         o.rmsnorm_bwd(t32({2, 4}), t16({4}), t32({2, 4}), t32({2, 4}), t32({4}), t32({2}), {});
       }},
      {"rope: head_dim 2, sign 0",
       [](Ops& o) {
         o.rope(t32({6, 16}), t32({3, 2}), kAttention, 0);
       }},
      {"rope: table f32(2, 2)",
       [](Ops& o) {
         o.rope(t32({6, 16}), t32({2, 2}), kAttention, 1);
       }},
      {"heads 3, kv_heads 2",
       [](Ops& o) {
         o.attention(t32({6, 6}), t32({2, 3, 3}), t32({6, 14}), {2, 3, 3, 2, 2});
       }},
      {"attention: lse is f32(6, 4), expected shape (2, 4, 3)",
       [](Ops& o) {
         o.attention(t32({6, 8}), t32({6, 4}), t32({6, 16}), kAttention);
       }},
      {"attention_bwd: dout is f32(6, 9)",
       [](Ops& o) {
         o.attention_bwd(t32({6, 16}), t32({6, 9}), t32({6, 8}), t32({2, 4, 3}), t32({6, 16}), kAttention);
       }},
      {"attention_bwd: table f32(2, 2)",
       [](Ops& o) {
         o.attention_bwd(t32({6, 16}), t32({6, 8}), t32({6, 8}), t32({2, 4, 3}), t32({6, 16}), kAttention, t32({2, 2}));
       }},
      {"cache_append: heads 3, kv_heads 2, head_dim 2",
       [](Ops& o) {
         o.cache_append(t32({9, 8}), t32({6, 14}), t32({5, 2}), ids(6), ids(6), {.heads = 3, .kv_heads = 2, .head_dim = 2});
       }},
      {"cache_append: heads 4, kv_heads 2, head_dim 3",
       [](Ops& o) {
         o.cache_append(t32({9, 12}), t32({6, 24}), t32({5, 3}), ids(6), ids(6), {.heads = 4, .kv_heads = 2, .head_dim = 3});
       }},
      {"cache_append: qkv is f32(6, 15), expected shape (6, 16)",
       [](Ops& o) {
         o.cache_append(t32({9, 8}), t32({6, 15}), t32({5, 2}), ids(6), ids(6), kCache);
       }},
      {"cache_append: cache is bf16(9, 8), expected f32",
       [](Ops& o) {
         o.cache_append(t16({9, 8}), t32({6, 16}), t32({5, 2}), ids(6), ids(6), kCache);
       }},
      {"cache_append: table is f32(5, 4), expected shape (5, 2)",
       [](Ops& o) {
         o.cache_append(t32({9, 8}), t32({6, 16}), t32({5, 4}), ids(6), ids(6), kCache);
       }},
      {"cache_append: positions is i32(5), expected shape (6)",
       [](Ops& o) {
         o.cache_append(t32({9, 8}), t32({6, 16}), t32({5, 2}), ids(5), ids(6), kCache);
       }},
      {"cache_append: slots is f32(6), expected i32",
       [](Ops& o) {
         o.cache_append(t32({9, 8}), t32({6, 16}), t32({5, 2}), ids(6), t32({6}), kCache);
       }},
      {"cache_attention: cache is f32(9, 16), expected shape (9, 8)",
       [](Ops& o) {
         o.cache_attention(t32({6, 8}), t32({6, 16}), t32({9, 16}), segments(2), kCache);
       }},
      {"cache_attention: out is f32(6, 16), expected shape (6, 8)",
       [](Ops& o) {
         o.cache_attention(t32({6, 16}), t32({6, 16}), t32({9, 8}), segments(2), kCache);
       }},
      {"cache_attention: segments is i32(24)",
       [](Ops& o) {
         o.cache_attention(t32({6, 8}), t32({6, 16}), t32({9, 8}), ids(24), kCache);
       }},
      {"cache_attention: segments is f32(2, 12), expected i32",
       [](Ops& o) {
         o.cache_attention(t32({6, 8}), t32({6, 16}), t32({9, 8}), t32({2, kKvSegment}), kCache);
       }},
      {"cache_attention: 6 queries, 5 keys",
       [](Ops& o) {
         CacheShape s = kCache;
         s.max_queries = 6;
         o.cache_attention(t32({6, 8}), t32({6, 16}), t32({9, 8}), segments(2), s);
       }},
      {"argmax: ids is i32(3), expected shape (2)",
       [](Ops& o) {
         o.argmax(ids(3), t32({2}), t32({2, 7}), 0);
       }},
      {"argmax: values is bf16(2), expected f32",
       [](Ops& o) {
         o.argmax(ids(2), t16({2}), t16({2, 7}), 0);
       }},
      {"argmax: first -1, logits f32(2, 7)",
       [](Ops& o) {
         o.argmax(ids(2), t32({2}), t32({2, 7}), -1);
       }},
      {"argmax: first 0, logits f32(2, 0)",
       [](Ops& o) {
         o.argmax(ids(2), t32({2}), t32({2, 0}), 0);
       }},
      {"swiglu: gu is f32(2, 6)",
       [](Ops& o) {
         o.swiglu(t32({2, 4}), t32({2, 6}));
       }},
      {"add: b is bf16(4), expected f32", [](Ops& o) { o.add(t32({4}), t32({4}), t16({4})); }},
      {"cross_entropy_partial: stats is f32(2, 2)",
       [](Ops& o) {
         o.cross_entropy_partial(t32({2, 2}), t32({2, 7}), ids(2), 0);
       }},
      {"cross_entropy_bwd: first 0, logits f32(2, 0)",
       [](Ops& o) {
         o.cross_entropy_bwd(t32({2, 0}), t32({2, 0}), t32({2, 3}), ids(2), 0, 1);
       }},
      {"narrow_rmsnorm: x is f32(2, 4), expected bf16",
       [](Ops& o) {
         o.narrow_rmsnorm(t32({2, 4}), t32({2}), t32({2, 4}), t32({4}), 1e-5);
       }},
      {"narrow_rmsnorm_bwd: dw is bf16(3), expected shape (4)",
       [](Ops& o) {
         o.narrow_rmsnorm_bwd(t16({2, 4}), t16({3}), t16({2, 4}), t16({2, 4}), t16({4}), t32({2}), {});
       }},
      {"narrow_softmax: scores bf16(2, 3)",
       [](Ops& o) {
         o.narrow_softmax(t16({2, 3}), t32({2}), t16({2, 3}), 1);
       }},
      {"narrow_cross_entropy_partial: stats is f32(2, 2)",
       [](Ops& o) {
         o.narrow_cross_entropy_partial(t32({2, 2}), t16({2, 7}), ids(2), 0);
       }},
      {"round_rows: src is bf16(2, 4), expected f32",
       [](Ops& o) {
         o.round_rows(t16({2, 4}), t16({2, 4}), {}, {});
       }},
      {"cross_entropy_finish: loss_sum is f32(1)",
       [](Ops& o) {
         o.cross_entropy_finish(t32({1}), t32({2, 3}), ids(2));
       }},
      {"cross_entropy_merge: parts f32(2, 3)",
       [](Ops& o) {
         o.cross_entropy_merge(t32({2, 3}), t32({2, 3}));
       }},
      {"cross_entropy_merge: parts f32(0, 2, 3)",
       [](Ops& o) {
         o.cross_entropy_merge(t32({2, 3}), t32({0, 2, 3}));
       }},
      {"cross_entropy_merge: parts is f32(4, 2, 2), expected shape (4, 2, 3)",
       [](Ops& o) {
         o.cross_entropy_merge(t32({2, 3}), t32({4, 2, 2}));
       }},
      {"cross_entropy_merge: stats is f32(4, 3), expected shape (2, 3)",
       [](Ops& o) {
         o.cross_entropy_merge(t32({4, 3}), t32({4, 2, 3}));
       }},
      {"cross_entropy_merge: stats is f64(2, 3), expected f32",
       [](Ops& o) {
         o.cross_entropy_merge(t64({2, 3}), t32({4, 2, 3}));
       }},
      {"cast: map first -1, run 0, stride 0, offset 0",
       [](Ops& o) { o.cast(t16({4}), t32({4}), Rounding::stochastic, {}, {.first = -1}); }},
      {"fill_normal: map first 0, run 5, stride 4, offset 0", [](Ops& o) { o.fill_normal(t32({4}), 1, {}, {.run = 5, .stride = 4}); }},
      {"adamw: map first 0, run 0, stride 0, offset -1",
       [](Ops& o) { adamw(o, adamw_tensors(DType::f32, DType::f32, false), {.map = {.offset = -1}}); }},
      {"sum: x is i32(3), expected contiguous floats", [](Ops& o) { o.sum(t64({1}), ids(3)); }},
      {"sum: out is f32(1), expected f64", [](Ops& o) { o.sum(t32({1}), t32({3})); }},
      {"sum: x f64(3, 1)",
       [](Ops& o) {
         o.sum(t64({1}), t64({3, 1}));
       }},
      {"sum: out is f64(2), expected shape (1)", [](Ops& o) { o.sum(t64({2}), t64({3})); }},
      {"checksum: out is i32(1), expected shape (2)", [](Ops& o) { o.checksum(ids(1), t32({3})); }},
      {"checksum: x f32(2, 4) has strides (5, 1)",
       [](Ops& o) {
         o.checksum(ids(2), columns(t32({2, 5}), 0, 4));
       }},
      {"largest: out is f32(1), expected f64", [](Ops& o) { o.largest(t32({1}), t32({3}), true); }},
      {"largest: x is i32(3), expected contiguous floats", [](Ops& o) { o.largest(t64({1}), ids(3), true); }},
      {"add_losses: table f32(2, 4)",
       [](Ops& o) {
         o.add_losses(t32({2, 4}), t32({6, 3}), ids(6), ids(2), 0, 4);
       }},
      {"add_losses: 6 tokens from 4 of 2 rows of 4, in 4 parts",
       [](Ops& o) {
         o.add_losses(t64({2, 4}), t32({6, 3}), ids(6), ids(2), 4, 4);
       }},
      {"add_losses: 6 tokens from 0 of 2 rows of 4, in 5 parts",
       [](Ops& o) {
         o.add_losses(t64({2, 5}), t32({6, 3}), ids(6), ids(2), 0, 4);
       }},
      {"adamw: change is f64(1), expected shape (5)",
       [](Ops& o) {
         AdamwTensors t = adamw_tensors(DType::f32, DType::f32, false);
         t.change = t64({1});
         adamw(o, t, {});
       }},
      {"cast: f64(4) to f32(4)", [](Ops& o) { o.cast(t32({4}), t64({4})); }},
      {"clip_scale: sq f32(2)", [](Ops& o) { o.clip_scale(t32({1}), t32({2}), 1); }},
      {"adamw: weight f32(5) is its own master", [](Ops& o) { adamw(o, adamw_tensors(DType::f32, DType::f32, true), {}); }},
      {"adamw: step is f64(3), expected shape (4)",
       [](Ops& o) {
         AdamwTensors t = adamw_tensors(DType::bf16, DType::f32, true);
         t.step = t64({3});
         adamw(o, t, {});
       }},
      {"adamw: step is f32(4), expected f64",
       [](Ops& o) {
         AdamwTensors t = adamw_tensors(DType::bf16, DType::f32, true);
         t.step = t32({4});
         adamw(o, t, {});
       }},
      {"adamw: step 0", [](Ops&) { AdamwStep::of(1e-3, 0, 0.9f, 0.95f); }},
  };
  expect_refused(calls);
}

TEST(OpsFront, RefusesForbiddenAliases) {
  Region temp;
  NullOps ops(temp);
  float buffer[16] = {};
  const Tensor x = Tensor::contiguous(buffer, DType::f32, {4, 4});
  EXPECT_THROW(ops.matmul(x, x, t32({4, 4}), {}), CheckFailed);
  const CacheShape same_width{.heads = 2, .kv_heads = 2, .head_dim = 2};  // no shape has out as wide as qkv: only the start is shared
  const Tensor qkv = Tensor::contiguous(buffer, DType::f32, {1, 12}), out = Tensor::contiguous(buffer, DType::f32, {1, 4});
  EXPECT_THROW(ops.cache_attention(out, qkv, t32({3, 8}), segments(1), same_width), CheckFailed);
  EXPECT_THROW(ops.rmsnorm_bwd(x, t32({4}), x, t32({4, 4}), t32({4}), t32({4}), {.add_dx = true}), CheckFailed);
  EXPECT_NO_THROW(ops.rmsnorm_bwd(x, t32({4}), x, t32({4, 4}), t32({4}), t32({4}), {}));
  EXPECT_NO_THROW(ops.add(x, x, x));
  const Tensor parts = Tensor::contiguous(buffer, DType::f32, {2, 2, 3});
  const auto part = [&](int64_t p) { return Tensor::contiguous(buffer + 6 * p, DType::f32, {2, 3}); };
  EXPECT_NO_THROW(ops.cross_entropy_merge(part(0), parts));
  EXPECT_THROW(ops.cross_entropy_merge(part(1), parts), CheckFailed);
}

TEST(OpsFront, AcceptsEveryPrecisionCombination) {
  Region temp;
  NullOps ops(temp);
  for (const DType moment : {DType::f32, DType::bf16}) {
    adamw(ops, adamw_tensors(DType::f32, moment, false), {});
    adamw(ops, adamw_tensors(DType::bf16, moment, false), {});
    adamw(ops, adamw_tensors(DType::bf16, moment, true), {});
  }
  EXPECT_EQ(ops.cost()[OpKind::adamw].calls, 6);
}

TEST(OpsFront, CountsCost) {
  Region temp;
  NullOps ops(temp);
  ops.matmul(t16({2, 3}), t16({2, 4}), t16({4, 3}), {});
  EXPECT_EQ(ops.cost()[OpKind::matmul].flops, 2 * 2 * 3 * 4);
  EXPECT_EQ(ops.cost()[OpKind::matmul].bytes, 2 * (2 * 4 + 4 * 3 + 2 * 3));
  ops.matmul(t32({2, 3}), t16({2, 4}), t16({4, 3}), {.accumulate = true});
  EXPECT_EQ(ops.cost()[OpKind::matmul].calls, 2);
  EXPECT_EQ(ops.cost()[OpKind::matmul].bytes, 2 * (2 * 4 + 4 * 3 + 2 * 3) + 2 * (2 * 4 + 4 * 3) + 2 * 4 * 2 * 3);
  // 2 sequences x 4 heads x 6 causal pairs, 2 products of 2 * E each forward and 5 backward.
  ops.attention(t32({6, 8}), t32({2, 4, 3}), t32({6, 16}), kAttention);
  EXPECT_EQ(ops.cost()[OpKind::attention].flops, 2 * 4 * 6 * 2 * 2 * 2);
  ops.attention_bwd(t32({6, 16}), t32({6, 8}), t32({6, 8}), t32({2, 4, 3}), t32({6, 16}), kAttention);
  EXPECT_EQ(ops.cost()[OpKind::attention_bwd].flops, 2.5 * ops.cost()[OpKind::attention].flops);
  EXPECT_EQ(ops.cost()[OpKind::attention_bwd].flops, 960);
  // 10 pairs x 4 heads, 2 products of 2 * E each.
  ops.cache_attention(t16({6, 8}), t16({6, 16}), t16({9, 8}), segments(2), kCache);
  EXPECT_EQ(ops.cost()[OpKind::cache_attention].flops, 10 * 4 * 2 * 2 * 2);
  ops.cache_append(t16({9, 8}), t16({6, 16}), t32({5, 2}), ids(6), ids(6), kCache);
  EXPECT_EQ(ops.cost()[OpKind::cache_append].flops, 3 * 6 * 12);
  EXPECT_EQ(ops.cost()[OpKind::cache_append].bytes, 2 * (2 * 6 * 12 + 2 * 6 * 8));
  ops.argmax(ids(2), t32({2}), t16({2, 7}), 0);
  EXPECT_EQ(ops.cost()[OpKind::argmax].bytes, 8 + 8 + 2 * 14);
  ops.reset_cost();
  for (const OpCost& c : ops.cost().op) EXPECT_EQ(c.flops, 0);
  ops.cross_entropy_merge(t32({2, 3}), t32({4, 2, 3}));
  EXPECT_EQ(ops.cost()[OpKind::cross_entropy].flops, 5 * 4 * 2);
  EXPECT_EQ(ops.cost()[OpKind::cross_entropy].bytes, 4 * (6 + 24));
  ops.checksum(ids(2), t16({10}));
  EXPECT_EQ(ops.cost()[OpKind::checksum].bytes, 8 + 20);
  ops.sum(t64({1}), t64({10}));
  EXPECT_EQ(ops.cost()[OpKind::sum].flops, 10);
}

TEST(OpsFront, EveryOpKindHasAName) {
  EXPECT_EQ(name_of(OpKind::embed), "embed");
  EXPECT_EQ(name_of(OpKind::attention_bwd), "attention_bwd");
  EXPECT_EQ(name_of(OpKind::cache_attention), "cache_attention");
  EXPECT_EQ(name_of(OpKind::argmax), "argmax");
  EXPECT_EQ(name_of(OpKind::sum), "sum");
  EXPECT_EQ(name_of(OpKind::adamw), "adamw");
  EXPECT_EQ(name_of(OpKind::checksum), "checksum");
  EXPECT_EQ(name_of(OpKind::add_losses), "add_losses");
}

// Stands for a backend with known needs.
class ScratchModel : public NullOps {
 public:
  using NullOps::NullOps;
  size_t matmul_scratch(const MatmulShape& s) const override { return static_cast<size_t>(s.m * s.n * s.k); }
  size_t attention_scratch(const AttentionShape&, DType, bool backward) const override { return backward ? 2000 : 1000; }
  size_t cache_attention_scratch(int64_t tokens, int64_t segments, const CacheShape& s, DType) const override {
    return static_cast<size_t>(1000 * segments + 100 * s.max_keys + tokens);
  }
  size_t rmsnorm_bwd_scratch(int64_t rows, int64_t width) const override { return static_cast<size_t>(rows * width); }
  size_t embed_bwd_scratch(int64_t tokens, int64_t width) const override { return static_cast<size_t>(100 * tokens * width); }
  size_t reduce_scratch(int64_t elements) const override { return static_cast<size_t>(elements) + 3000; }
};

TEST(OpsFront, ScratchComesFromTempForOneCall) {
  Region unused;
  const ScratchModel model(unused);
  const std::vector<std::pair<size_t, std::function<void(Ops&)>>> calls = {
      {256,
       [](Ops& o) {
         o.matmul(t32({10, 10}), t32({10, 2}), t32({2, 10}), {});
       }},  // 200, padded
      {1024,
       [](Ops& o) {
         o.attention(t32({6, 8}), t32({2, 4, 3}), t32({6, 16}), kAttention);
       }},
      {2048,
       [](Ops& o) {
         o.attention_bwd(t32({6, 16}), t32({6, 8}), t32({6, 8}), t32({2, 4, 3}), t32({6, 16}), kAttention);
       }},
      {2560,
       [](Ops& o) {
         o.cache_attention(t32({6, 8}), t32({6, 16}), t32({9, 8}), segments(2), kCache);
       }},  // 2506, padded
      {512,
       [](Ops& o) {
         o.rmsnorm_bwd(t32({5, 100}), t32({100}), t32({5, 100}), t32({5, 100}), t32({100}), t32({5}), {});
       }},
      {1024,
       [](Ops& o) {
         o.embed_bwd(t32({9, 4}), ids(2), t32({2, 4}), 0);
       }},
      {3072, [](Ops& o) { o.sum_squares(t64({1}), t32({50})); }},
      {3072, [](Ops& o) { adamw(o, adamw_tensors(DType::f32, DType::f32, false), {}); }},
      {3328, [](Ops& o) { o.checksum(ids(2), t32({300})); }},
      {3328, [](Ops& o) { o.largest(t64({1}), t32({300}), false); }},
      {18176,
       [](Ops& o) {
         AdamwTensors t = adamw_tensors(DType::f32, DType::f32, false);
         t.change = t64({kAdamwChange});
         adamw(o, t, {});
       }},  // six times 3005, padded
  };
  for (const auto& [bytes, call] : calls) {
    Region temp;
    NullOps ops(temp, &model);
    call(ops);
    EXPECT_EQ(temp.high_water(), bytes);
    EXPECT_EQ(temp.mark(), 0u);
    Region none;
    NullOps without(none);
    call(without);
    EXPECT_EQ(none.high_water(), 0u);
  }
}

}  // namespace
}  // namespace hlat
