// Tensors without rows or elements, as an uneven split can leave them: every op that may meet them is a no-op, and what it
// must write (sums of nothing) is zero. On the null backend, the reference and every backend of this machine.
#include <cmath>

#include "support/ops_fixture.h"
#include "tensor/columns.h"

namespace hlat {
namespace {

constexpr DType f32 = DType::f32;
using Sync = std::function<void()>;

// Every op on no tokens, or on no elements. Returns what attention of no queries was given to write: all 3.
Tensor ops_on_nothing(
    Ops& ops, HostMemory& memory, DType dtype, const Sync& sync = [] {}) {
  const DType stat = dtype == DType::f64 ? DType::f64 : f32;
  const auto t = [&](const Shape& shape) { return memory.zeros(dtype, shape); };
  const Tensor x = t({0, 6}), w = t({6}), rstd = memory.zeros(stat, {0}), stats = memory.zeros(stat, {0, 3});
  const Tensor ids = memory.zeros(DType::i32, {0}), loss = memory.zeros(DType::f64, {1});
  ops.embed(x, ids, t({5, 6}), 0);
  ops.embed(t({2, 6}), memory.zeros(DType::i32, {2}), t({0, 6}), 4);
  ops.embed_bwd(t({5, 6}), ids, x, 0);
  ops.embed_bwd(t({0, 6}), memory.zeros(DType::i32, {2}), t({2, 6}), 4);
  ops.rmsnorm(x, rstd, x, w, 1e-5);
  ops.add_rmsnorm(x, t({0, 6}), rstd, x, x, w, 1e-5);
  ops.swiglu(t({0, 3}), x);
  ops.swiglu_bwd(x, t({0, 3}), x);
  ops.swiglu(t({4, 0}), t({4, 0}));
  ops.add(x, x, x);
  ops.cross_entropy_partial(stats, x, ids, 0);
  ops.cross_entropy_merge(stats, memory.zeros(stat, {3, 0, 3}));
  ops.cross_entropy_finish(loss, stats, ids);
  ops.cross_entropy_bwd(x, x, stats, ids, 0, 1);
  const CacheShape cache{.heads = 1, .kv_heads = 1, .head_dim = 2};  // a row is q, k, v of 2 each
  const Tensor none = memory.zeros(DType::i32, {0, kKvSegment}), one = memory.zeros(DType::i32, {1, kKvSegment}), kept = t({3, 2});
  ops.cache_append(t({4, 4}), x, memory.zeros(stat, {3, 2}), ids, ids, cache);
  ops.cache_attention(t({0, 2}), x, t({4, 4}), one, cache);
  ops.fill(kept, 3);
  ops.cache_attention(kept, t({3, 6}), t({4, 4}), none, cache);
  ops.cache_attention(kept, t({3, 6}), t({4, 4}), one, cache);  // a segment without queries
  ops.argmax(ids, rstd, x, 0);
  ops.cast(memory.zeros(stat, {0}), t({0}));
  ops.cast(t({0}), memory.zeros(stat, {0}), Rounding::stochastic, {}, {.first = 3, .run = 2, .stride = 9, .offset = 1});
  ops.fill(x, 1);
  ops.fill_normal(x, 1, {}, {.run = 2, .stride = 9});
  sync();
  EXPECT_EQ(load_f64(loss, 0), 0);
  return kept;
}

TEST(OpsEmpty, FrontAndReferenceAcceptThem) {
  HostMemory memory;
  Region temp;
  NullOps null(temp);
  RefOps ref(temp);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) ops_on_nothing(null, memory, dtype);
  EXPECT_EQ(to_f64(ops_on_nothing(ref, memory, DType::f64)), std::vector<double>(6, 3));
}

TEST(OpsEmpty, AnEmptyTensorAliasesNothing) {
  float buffer[16] = {};
  Region temp;
  NullOps ops(temp);
  const Tensor c = Tensor::contiguous(buffer, f32, {4, 4}), a = Tensor::contiguous(buffer, f32, {4, 0}),
               b = Tensor::contiguous(buffer, f32, {0, 4});
  EXPECT_NO_THROW(ops.matmul(c, a, b, {}));
  EXPECT_TRUE(columns(c, 2, 2).is_contiguous());
}

// Values that must be written: on the backend and on the reference.
void sums_of_nothing(
    Ops& ops, HostMemory& memory, DType dtype, const Sync& sync = [] {}) {
  const DType stat = dtype == DType::f64 ? DType::f64 : f32;
  const auto nan = [&](DType type, const Shape& shape) {
    return memory.from(type, shape, std::vector<double>(static_cast<size_t>(shape.numel()), NAN));
  };
  const auto zero = [&](const Tensor& t) { return to_f64(t) == std::vector<double>(static_cast<size_t>(t.numel()), 0.0); };
  const auto t = [&](const Shape& shape) { return memory.zeros(dtype, shape); };

  const Tensor sum = nan(DType::f64, {1}), narrow = nan(DType::f64, {1}), squares = nan(DType::f64, {1}), weight_sq = nan(DType::f64, {1});
  ops.sum(sum, memory.zeros(DType::f64, {0}));
  ops.sum(narrow, t({0}));
  ops.sum_squares(squares, t({0, 7}));
  adamw(ops, {t({0}), {}, t({0}), t({0}), t({0}), memory.zeros(stat, {1}), memory.zeros(DType::f64, {kAdamwStep}), weight_sq, {}},
        {.round_weights = Rounding::stochastic, .round_moments = Rounding::stochastic});
  sync();
  EXPECT_TRUE(zero(sum) && zero(narrow) && zero(squares) && zero(weight_sq));
  const Tensor mark = memory.from(DType::i32, {2}, {5, 5});
  ops.checksum(mark, t({3, 0}));
  sync();
  EXPECT_TRUE(zero(mark));
  const Tensor top = memory.from(DType::f64, {1}, {-3});
  ops.largest(top, t({0, 5}), true);
  sync();
  EXPECT_EQ(to_f64(top), std::vector<double>{-3});

  const Tensor dw = nan(dtype, {6}), kept = memory.random(dtype, {6}, "dw");
  const std::vector<double> before = to_f64(kept);
  for (const bool accumulate : {false, true})
    ops.rmsnorm_bwd(t({0, 6}), accumulate ? kept : dw, t({0, 6}), t({0, 6}), t({6}), memory.zeros(stat, {0}),
                    {.accumulate_dw = accumulate});
  sync();
  EXPECT_TRUE(zero(dw));
  EXPECT_EQ(to_f64(kept), before);
}

// All four transposes of products with m, n or k = 0; c whole, or columns of a wider matrix.
void empty_products(
    Ops& ops, HostMemory& memory, DType dtype, const Sync& sync = [] {}) {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size s : {Size{0, 3, 4}, Size{3, 0, 4}, Size{3, 4, 0}, Size{1, 1, 0}, Size{0, 0, 0}}) {
    for (int bits = 0; bits < 16; ++bits) {
      const bool ta = (bits & 1) != 0, tb = (bits & 2) != 0, accumulate = (bits & 4) != 0, strided = (bits & 8) != 0;
      const Tensor a = memory.zeros(dtype, ta ? Shape{s.k, s.m} : Shape{s.m, s.k}),
                   b = memory.zeros(dtype, tb ? Shape{s.n, s.k} : Shape{s.k, s.n});
      const Tensor whole = memory.random(dtype, {s.m, s.n + (strided ? 5 : 0)}, "c");
      const Tensor c = strided ? columns(whole, 2, 2 + s.n) : whole;
      std::vector<double> expected = to_f64(whole);
      for (int64_t i = 0; i < s.m && !accumulate; ++i)
        for (int64_t j = 0; j < s.n; ++j) expected[static_cast<size_t>(i * whole.dim(1) + (strided ? 2 : 0) + j)] = 0;
      ops.matmul(c, a, b, {.trans_a = ta, .trans_b = tb, .accumulate = accumulate});
      sync();
      EXPECT_EQ(to_f64(whole), expected) << s.m << " " << s.n << " " << s.k << " variant " << bits;
    }
  }
}

TEST(OpsEmpty, ReferenceWritesZeros) {
  HostMemory memory;
  Region temp;
  RefOps ref(temp);
  sums_of_nothing(ref, memory, DType::f64);
  empty_products(ref, memory, DType::f64);
}

class OpsEmptyOn : public OpsFixture {};

TEST_P(OpsEmptyOn, WritesZeros) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    temp_ = memory_.region(Purpose::temp, size_t{1} << 16);
    EXPECT_EQ(to_f64(ops_on_nothing(*ops_, memory_, dtype, GetParam().sync)), std::vector<double>(6, 3));
    sums_of_nothing(*ops_, memory_, dtype, GetParam().sync);
    empty_products(*ops_, memory_, dtype, GetParam().sync);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpsEmptyOn, ::testing::ValuesIn(test_backends()), [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace hlat
