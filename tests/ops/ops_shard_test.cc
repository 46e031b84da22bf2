// Pieces of tensors, as tensor-parallel and ZeRO shards hold them: noise and initial values of a piece are those of the same
// elements of the whole, bit for bit; a sharded vocabulary gives the whole one's embedding; fingerprints of bits.
#include "backend/cpu/cpu_ops.h"
#include "support/ops_fixture.h"

namespace hlat {
namespace {

// A piece of a (rows, cols) matrix: a rectangle of it, and of that (row by row) the elements [begin, end).
struct LocalPart {
  int64_t rows, cols;
  int64_t row0, row1, col0, col1;
  int64_t begin, end;

  int64_t width() const { return col1 - col0; }
  int64_t size() const { return end - begin; }
  int64_t element(int64_t e) const { return (row0 + (begin + e) / width()) * cols + col0 + (begin + e) % width(); }
  ElementMap map() const {
    if (width() == cols) return {.first = row0 * cols, .offset = begin};
    return {.first = row0 * cols + col0, .run = width(), .stride = cols, .offset = begin};
  }
  std::string str() const {
    return fmt::format("rows [{}, {}) columns [{}, {}) of {} x {}, elements [{}, {})", row0, row1, col0, col1, rows, cols, begin, end);
  }
};

LocalPart rectangle(int64_t rows, int64_t cols, int64_t row0, int64_t row1, int64_t col0, int64_t col1) {
  return {rows, cols, row0, row1, col0, col1, 0, (row1 - row0) * (col1 - col0)};
}

LocalPart range(LocalPart p, int64_t begin, int64_t end) {
  p.begin = begin;
  p.end = end;
  return p;
}

std::vector<LocalPart> parts() {
  const LocalPart columns = rectangle(37, 101, 0, 37, 3, 32), one = rectangle(37, 101, 0, 37, 100, 101),
                  large = rectangle(180, 201, 0, 180, 5, 101);
  return {
      rectangle(37, 101, 0, 37, 0, 101),                  // all of it
      rectangle(37, 101, 5, 20, 0, 101),                  // rows
      range(rectangle(37, 101, 5, 20, 0, 101), 50, 997),  // a flat range of rows, from mid-row to mid-row
      columns,
      range(columns, 40, 41),             // within one run
      range(columns, 28, 30),             // over the edge of one
      range(columns, 40, 900),            // from mid-run to mid-run
      rectangle(37, 101, 7, 9, 90, 101),  // both
      one,                                // runs of one element
      range(one, 3, 3),                   // nothing
      large,                              // enough for several threads
      range(large, 123, 17000),
  };
}

TEST(ElementMap, FindsTheElementsOfAPiece) {
  for (const LocalPart& p : parts()) {
    const ElementMap map = p.map();
    ASSERT_TRUE(map.valid()) << p.str();
    for (int64_t e = 0; e < p.size(); ++e) ASSERT_EQ(map.global(e), p.element(e)) << p.str() << " element " << e;
    for (const int64_t skip : {0, 1, 28, 29, 30}) {
      int64_t next = std::min(skip, p.size());
      map.for_runs(next, p.size(), [&](int64_t begin, int64_t end, int64_t global) {
        ASSERT_EQ(begin, next) << p.str();
        ASSERT_LT(begin, end);
        for (int64_t e = begin; e < end; ++e) ASSERT_EQ(global + e - begin, p.element(e)) << p.str() << " element " << e;
        next = end;
      });
      EXPECT_EQ(next, p.size()) << p.str();
    }
  }
}

TEST(ElementMap, JoinsRunsThatTouch) {
  int calls = 0;
  const ElementMap map{.first = 7, .run = 4, .stride = 4, .offset = 3};
  map.for_runs(2, 100, [&](int64_t begin, int64_t end, int64_t global) {
    ++calls;
    EXPECT_EQ(begin, 2);
    EXPECT_EQ(end, 100);
    EXPECT_EQ(global, 12);
  });
  EXPECT_EQ(calls, 1);
}

TEST(ElementMap, KnowsWhatIsNoMap) {
  EXPECT_TRUE((ElementMap{.run = 3, .stride = 3}).valid());
  for (const ElementMap& m : {ElementMap{.first = -1}, ElementMap{.offset = -1}, ElementMap{.run = -1}, ElementMap{.run = 3, .stride = 2}})
    EXPECT_FALSE(m.valid());
}

class OpsShard : public OpsFixture {
 protected:
  // The elements of `whole` that the piece holds.
  Tensor take(const Tensor& whole, const LocalPart& p) {
    const Tensor t = memory_.zeros(whole.dtype, {p.size()});
    const size_t size = size_of(whole.dtype);
    for (int64_t e = 0; e < p.size(); ++e)
      std::memcpy(t.as<std::byte>() + static_cast<size_t>(e) * size, whole.as<std::byte>() + static_cast<size_t>(p.element(e)) * size,
                  size);
    return t;
  }
  uint64_t checksum(const Tensor& x) {
    const Tensor out = memory_.zeros(DType::i32, {2});
    run([&](Ops& ops) { ops.checksum(out, x); });
    return static_cast<uint32_t>(out.as<int32_t>()[0]) | uint64_t{static_cast<uint32_t>(out.as<int32_t>()[1])} << 32;
  }
};

constexpr NoiseKey kShardKey{.seed = 3, .stream = 4, .purpose = Noise::cast, .step = 5};

TEST_P(OpsShard, InitialValuesOfAPieceAreThoseOfTheWhole) {
  for (const LocalPart& p : parts()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tensor whole = memory_.zeros(dtype, {p.rows, p.cols}), piece = memory_.zeros(dtype, {p.size()});
      run([&](Ops& ops) { ops.fill_normal(whole, 0.5, kShardKey), ops.fill_normal(piece, 0.5, kShardKey, p.map()); });
      EXPECT_TRUE(same_bits(piece, take(whole, p))) << name_of(dtype) << " " << p.str();
    }
  }
}

TEST_P(OpsShard, RoundingOfAPieceIsThatOfTheWhole) {
  for (const LocalPart& p : parts()) {
    const Tensor src = memory_.random(DType::f32, {p.rows, p.cols}, "src"), mine = take(src, p);
    const Tensor whole = memory_.zeros(DType::bf16, src.shape), piece = memory_.zeros(DType::bf16, mine.shape);
    run([&](Ops& ops) {
      ops.cast(whole, src, Rounding::stochastic, kShardKey);
      ops.cast(piece, mine, Rounding::stochastic, kShardKey, p.map());
    });
    EXPECT_TRUE(same_bits(piece, take(whole, p))) << p.str();
  }
}

TEST_P(OpsShard, AdamwOfAPieceIsThatOfTheWhole) {
  for (const LocalPart& p : parts()) {
    for (int bits = 0; bits < 16; ++bits) {
      const auto type = [&](int bit) { return (bits & bit) != 0 ? DType::bf16 : DType::f32; };
      const bool master = (bits & 8) != 0;
      if (master && type(1) == DType::f32) continue;  // its own master
      const Shape shape{p.rows, p.cols};
      AdamwTensors t{.weight = memory_.random(type(1), shape, "w", 0.02),
                     .master = master ? memory_.random(DType::f32, shape, "w", 0.02) : Tensor{},
                     .m = memory_.random(type(2), shape, "m", 1e-2),
                     .v = memory_.zeros(type(2), shape),
                     .grad = memory_.random(type(4), shape, "g", 1e-2),
                     .scale = vector(DType::f32, {0.3}),
                     .step = adamw_step(1e-3, 9),
                     .weight_sq = memory_.zeros(DType::f64, {1})};
      run([&](Ops& ops) { ops.fill(t.v, 1e-4); });
      AdamwTensors mine{.weight = take(t.weight, p),
                        .master = master ? take(t.master, p) : Tensor{},
                        .m = take(t.m, p),
                        .v = take(t.v, p),
                        .grad = take(t.grad, p),
                        .scale = t.scale,
                        .step = t.step,
                        .weight_sq = memory_.from(DType::f64, {1}, {-1})};
      AdamwScalars s{
          .weight_decay = 0.1f, .round_weights = Rounding::stochastic, .round_moments = Rounding::stochastic, .seed = 5, .stream = 6};
      run([&](Ops& ops) {
        s.map = {};
        adamw(ops, t, s);
        s.map = p.map();
        adamw(ops, mine, s);
      });
      const std::string what = fmt::format("{}: weight {}, moments {}, grad {}{}", p.str(), name_of(type(1)), name_of(type(2)),
                                           name_of(type(4)), master ? ", master" : "");
      EXPECT_TRUE(same_bits(mine.weight, take(t.weight, p))) << what;
      EXPECT_TRUE(same_bits(mine.m, take(t.m, p))) << what;
      EXPECT_TRUE(same_bits(mine.v, take(t.v, p))) << what;
      if (master) {
        EXPECT_TRUE(same_bits(mine.master, take(t.master, p))) << what;
      }
      double squares = 0;
      for (const double w : to_f64(master ? mine.master : mine.weight)) squares += w * w;
      EXPECT_NEAR(load_f64(mine.weight_sq, 0), squares, 1e-5 * squares) << what;  // f32 sums over short runs
    }
  }
}

// Zero rows add nothing, so the sum over shards is the whole table's row; rows of gradients are untouched by other shards.
TEST_P(OpsShard, VocabularyShardsEmbedLikeTheWhole) {
  const int64_t n = 50, d = 70, vocab = 23;
  std::vector<double> tokens;
  for (int64_t i = 0; i < n; ++i) tokens.push_back(static_cast<double>(i * 5 % vocab));
  const Tensor ids = vector(DType::i32, tokens);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor table = memory_.random(dtype, {vocab, d}, "table"), whole = memory_.zeros(dtype, {n, d}),
                 sum = memory_.zeros(dtype, {n, d});
    const Tensor dy = memory_.random(dtype, {n, d}, "dy"), dtable = memory_.zeros(dtype, {vocab, d}),
                 dshards = memory_.zeros(dtype, {vocab, d});
    run([&](Ops& ops) { ops.embed(whole, ids, table, 0), ops.embed_bwd(dtable, ids, dy, 0); });
    const std::vector<int64_t> cuts = {0, 1, 9, 9, 22, vocab};
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      const Tensor part = memory_.random(dtype, {n, d}, "garbage");
      run([&](Ops& ops) {
        ops.embed(part, ids, table.rows(cuts[i], cuts[i + 1]), cuts[i]);
        ops.add(sum, sum, part);
        ops.embed_bwd(dshards.rows(cuts[i], cuts[i + 1]), ids, dy, cuts[i]);
      });
    }
    EXPECT_EQ(to_f64(whole), to_f64(sum));
    EXPECT_TRUE(same_bits(dtable, dshards));
  }
}

TEST_P(OpsShard, SumGoesInOrder) {
  const Tensor out = memory_.from(DType::f64, {1}, {-1});
  const auto sum = [&](const std::vector<double>& v) {
    run([&](Ops& ops) { ops.sum(out, vector(DType::f64, v)); });
    return load_f64(out, 0);
  };
  EXPECT_EQ(sum({1e16, 1, -1e16, 1}), 1);  // the first 1 is lost
  EXPECT_EQ(sum({1, 1e16, -1e16, 1}), 1);
  EXPECT_EQ(sum({1e16, -1e16, 1, 1}), 2);
  EXPECT_EQ(sum({0.1}), 0.1);
}

// Any one bit, in whole words and in the tail.
TEST_P(OpsShard, ChecksumSeesEveryBit) {
  for (const int64_t n : {1, 2, 3, 5, 41}) {
    const Tensor x = memory_.random(DType::bf16, {n}, "x");
    const uint64_t before = checksum(x);
    for (size_t bit = 0; bit < 8 * x.bytes(); ++bit) {
      auto& byte = x.as<unsigned char>()[bit / 8];
      byte = static_cast<unsigned char>(byte ^ (1u << bit % 8));
      EXPECT_NE(checksum(x), before) << n << " elements, bit " << bit;
      byte = static_cast<unsigned char>(byte ^ (1u << bit % 8));
    }
    EXPECT_EQ(checksum(x), before);
  }
}

TEST_P(OpsShard, ChecksumSeesOrderAndLength) {
  const Tensor x = memory_.random(DType::f32, {40}, "x");
  const uint64_t before = checksum(x);
  for (int64_t i = 0; i < 40; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      std::swap(x.as<float>()[i], x.as<float>()[j]);
      EXPECT_NE(checksum(x), before) << i << " and " << j;
      std::swap(x.as<float>()[i], x.as<float>()[j]);
    }
  }
  const Tensor zeros = memory_.zeros(DType::f64, {5});
  for (int64_t n = 0; n < 5; ++n) EXPECT_NE(checksum(zeros.rows(0, n)), checksum(zeros.rows(0, n + 1)));
}

INSTANTIATE_TEST_SUITE_P(Ops, OpsShard, ::testing::ValuesIn(test_backends()), [](const auto& p) { return p.param.name; });

TEST(CpuOpsTest, RefusesNegativeIds) {
  HostMemory memory;
  Region temp;
  CpuOps ops(temp, {});
  const Tensor ids = memory.from(DType::i32, {2}, {1, -1}), table = memory.zeros(DType::f32, {3, 2}), y = memory.zeros(DType::f32, {2, 2});
  EXPECT_THROW(ops.embed(y, ids, table, 0), CheckFailed);
  EXPECT_THROW(ops.embed_bwd(table, ids, y, 0), CheckFailed);
}

}  // namespace
}  // namespace hlat
