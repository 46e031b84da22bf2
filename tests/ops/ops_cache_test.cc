// Properties of the ops on a cache of keys and values, on every backend: a text read through the cache is the text read at once as in
// training, however it is cut; texts do not disturb each other. And of argmax: which of equals, and what of NaN.
#include <cmath>
#include <limits>

#include "backend/cpu/cpu_ops.h"
#include "support/cached_texts.h"
#include "support/ops_fixture.h"

namespace hlat {
namespace {

constexpr DType i32 = DType::i32;

class OpsCache : public OpsFixture {
 protected:
  Tensor ids(const std::vector<int32_t>& v) { return memory_.from(i32, {static_cast<int64_t>(v.size())}, {v.begin(), v.end()}); }
  Tensor counting(int64_t n, int64_t first = 0) {
    std::vector<int32_t> v;
    for (int64_t i = 0; i < n; ++i) v.push_back(static_cast<int32_t>(first + i));
    return ids(v);
  }
  Tensor segments(const std::vector<KvSegment>& list) {
    const Tensor t = memory_.zeros(i32, {static_cast<int64_t>(list.size()), kKvSegment});
    std::memcpy(t.data, list.data(), t.bytes());
    return t;
  }
  Tensor attended(const std::vector<KvSegment>& list, const Tensor& qkv, const Tensor& cache, const CacheShape& s) {
    const Tensor out = memory_.zeros(qkv.dtype, {qkv.dim(0), s.out_width()}), segs = segments(list);
    run([&](Ops& ops) { ops.cache_attention(out, qkv, cache, segs, s); });
    return out;
  }
};

// Keys and values of all tokens of one text, in the order of the text from slot 0 on.
Tensor cache_of(HostMemory& memory, const Tensor& qkv, const CacheShape& s) {
  const Tensor view = columns(qkv, s.heads * s.head_dim, s.qkv_width());
  return memory.from(qkv.dtype, {qkv.dim(0), s.cache_width()}, to_f64(view));
}

// Weighted means of values near 1: a few roundings of the arithmetic, or of the weights and the result in bf16.
void expect_near(const Tensor& a, const Tensor& b, const std::string& what) {
  const double tolerance = a.dtype == DType::bf16 ? 4 * 0x1p-8 : 1e-5;
  const std::vector<double> x = to_f64(a), y = to_f64(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance * (1 + std::abs(y[i]))) << what << " element " << i;
}

TEST_P(OpsCache, AWholeTextIsAsInTraining) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const AttentionShape& a : {AttentionShape{1, 200, 4, 2, 64}, AttentionShape{1, 65, 8, 1, 80}, AttentionShape{1, 3, 2, 2, 16},
                                    AttentionShape{1, 130, 2, 2, 128}}) {
      const CachedTexts text({CachedText{a.seq, {a.seq}}});
      const CacheShape s = text.shape(a.heads, a.kv_heads, a.head_dim);
      const Tensor qkv = memory_.random(dtype, {a.seq, a.qkv_width()}, "qkv"), out = memory_.zeros(dtype, {a.seq, a.out_width()}),
                   lse = memory_.zeros(DType::f32, {1, a.heads, a.seq});
      run([&](Ops& ops) { ops.attention(out, lse, qkv, a); });
      KvSegment g = text.segments[0];
      g.run_slot[0] = 0;
      expect_near(attended({g}, qkv, cache_of(memory_, qkv, s), s), out, fmt::format("{} t{} e{}", name_of(dtype), a.seq, a.head_dim));
    }
}

// Appended and attended piece by piece, with pieces around the sizes of tiles: the keys of earlier pieces are in the cache only.
TEST_P(OpsCache, OneTokenAtATimeIsAsAllAtOnce) {
  const int64_t n = 150;
  const CacheShape heads{.heads = 4, .kv_heads = 2, .head_dim = 32};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor raw = memory_.random(dtype, {n, heads.qkv_width()}, "qkv"), table = memory_.zeros(DType::f32, {n, heads.head_dim});
    run([&](Ops& ops) { ops.rope_table(table, {}); });
    const auto by_pieces = [&](const std::vector<int64_t>& pieces) {
      const Tensor qkv = memory_.copy(dtype, raw), cache = memory_.zeros(dtype, {n, heads.cache_width()}),
                   out = memory_.zeros(dtype, {n, heads.out_width()});
      for (int64_t begin = 0, i = 0; begin < n; ++i) {
        const int64_t end = std::min(n, begin + pieces[static_cast<size_t>(i) % pieces.size()]);
        KvSegment g{.count = static_cast<int32_t>(end - begin), .keys = static_cast<int32_t>(end)};
        g.run_end.fill(static_cast<int32_t>(n));
        const CacheShape s = CachedTexts::shape_of({g}, heads.heads, heads.kv_heads, heads.head_dim);
        const Tensor at = counting(end - begin, begin), segs = segments({g});
        run([&](Ops& ops) {
          ops.cache_append(cache, qkv.rows(begin, end), table, at, at, s);
          ops.cache_attention(out.rows(begin, end), qkv.rows(begin, end), cache, segs, s);
        });
        begin = end;
      }
      return out;
    };
    const Tensor whole = by_pieces({n});
    expect_near(by_pieces({1}), whole, "token by token");
    expect_near(by_pieces({100, 1, 7, 40}), whole, "in pieces");
  }
}

TEST_P(OpsCache, AppendIsRopeAndCopy) {
  const AttentionShape a{.batch = 1, .seq = 37, .heads = 6, .kv_heads = 2, .head_dim = 24};
  const CacheShape s{.heads = a.heads, .kv_heads = a.kv_heads, .head_dim = a.head_dim};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor qkv = memory_.random(dtype, {a.seq, a.qkv_width()}, "qkv"), rotated = memory_.copy(dtype, qkv),
                 table = memory_.zeros(DType::f32, {a.seq, a.head_dim}),
                 cache = memory_.random(dtype, {a.seq + 20, s.cache_width()}, "cache"), before = memory_.copy(dtype, cache),
                 positions = counting(a.seq), slots = counting(a.seq, 11);
    run([&](Ops& ops) {
      ops.rope_table(table, {});
      ops.rope(rotated, table, a, 1);
      ops.cache_append(cache, qkv, table, positions, slots, s);
    });
    // The compiler of the GPU's kernels contracts sums and products as it likes: in f32 the last bit may differ.
    const bool exact = dtype == DType::bf16 || GetParam().name != "cuda";
    EXPECT_TRUE(!exact || same_bits(qkv, rotated)) << name_of(dtype);
    for (int64_t e = 0; e < qkv.numel(); ++e)
      ASSERT_NEAR(load_f64(qkv, e), load_f64(rotated, e), 1e-6) << name_of(dtype) << ", element " << e;
    EXPECT_TRUE(same_bits(cache.rows(11, 11 + a.seq), cache_of(memory_, qkv, s))) << name_of(dtype);
    EXPECT_TRUE(same_bits(cache.rows(0, 11), before.rows(0, 11)));
    EXPECT_TRUE(same_bits(cache.rows(11 + a.seq, a.seq + 20), before.rows(11 + a.seq, a.seq + 20)));
  }
}

// Of many kinds, each alone gives the bits it gave among the others.
TEST_P(OpsCache, ASegmentDoesNotDependOnTheOthers) {
  const CachedTexts texts({{1, {1200}}, {70, {300}, 2}, {1, {40, 30, 60}}, {3, {90}}, {1, {300, 5}, 0, 1}, {20, {30, 5}}, {1, {7}}});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const CacheShape s = texts.shape(4, 2, 64);
    const Tensor qkv = memory_.random(dtype, {texts.tokens, s.qkv_width()}, "qkv"),
                 cache = memory_.random(dtype, {texts.slots, s.cache_width()}, "cache");
    const Tensor together = attended(texts.segments, qkv, cache, s);
    for (const KvSegment& g : texts.segments) {
      const Tensor alone = attended({g}, qkv, cache, CachedTexts::shape_of({g}, s.heads, s.kv_heads, s.head_dim));
      const int64_t end = g.first + g.count;
      EXPECT_TRUE(same_bits(together.rows(g.first, end), alone.rows(g.first, end))) << name_of(dtype) << ", " << g.keys << " keys";
    }
  }
}

// A later token of the same segment, however large, leaves no trace in an earlier output.
TEST_P(OpsCache, AQueryDoesNotLookAhead) {
  for (const auto& [queries, keys] : {std::pair{100, 150}, {4, 130}, {3, 3}})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const CachedTexts text({CachedText{queries, {keys}}});
      const CacheShape s = text.shape(4, 2, 24);
      const Tensor qkv = memory_.random(dtype, {queries, s.qkv_width()}, "qkv"),
                   cache = memory_.random(dtype, {text.slots, s.cache_width()}, "cache");
      const Tensor before = attended(text.segments, qkv, cache, s);
      const int64_t slot = CachedTexts::slot(text.segments[0], keys - 2);
      for (int64_t i = 0; i < s.cache_width(); ++i) store_f64(cache, slot * s.cache_width() + i, 1e30);
      const Tensor after = attended(text.segments, qkv, cache, s);
      EXPECT_TRUE(same_bits(before.rows(0, queries - 2), after.rows(0, queries - 2))) << name_of(dtype) << " " << queries;
      EXPECT_FALSE(same_bits(before.rows(queries - 2, queries - 1), after.rows(queries - 2, queries - 1)));
    }
}

TEST_P(OpsCache, ArgmaxTakesTheLowestOfEquals) {
  const double inf = std::numeric_limits<double>::infinity();
  struct Case {
    std::vector<double> tail;  // after 40 smaller numbers
    double id, value;
  };
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const Case& c : {Case{{3, 5, 5, 4, 5}, 41, 5}, Case{{-0.0, 0.0}, 40, 0}, Case{{inf, 1, inf}, 40, inf}, Case{{-inf}, 0, -1},
                          Case{{-1, -1}, 0, -1}}) {
      std::vector<double> x(40, -1);
      x.insert(x.end(), c.tail.begin(), c.tail.end());
      const auto width = static_cast<int64_t>(x.size());
      const Tensor logits = memory_.from(dtype, {1, width}, x), id = ids({-1}), value = memory_.zeros(DType::f32, {1});
      run([&](Ops& ops) { ops.argmax(id, value, logits, 100); });
      EXPECT_EQ(load_f64(id, 0), 100 + c.id);
      EXPECT_EQ(load_f64(value, 0), c.value);
    }
}

TEST_P(OpsCache, ArgmaxPutsNanAboveAll) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int64_t place : {0, 1, 17, 63, 64, 69}) {
      std::vector<double> x = normals(70, "logits");
      x[3] = std::numeric_limits<double>::infinity();
      x[69] = x[static_cast<size_t>(place)] = std::nan("");
      const Tensor logits = memory_.from(dtype, {1, 70}, x), id = ids({-1}), value = memory_.zeros(DType::f32, {1});
      run([&](Ops& ops) { ops.argmax(id, value, logits, 5); });
      EXPECT_EQ(load_f64(id, 0), 5 + static_cast<double>(place));
      EXPECT_TRUE(std::isnan(load_f64(value, 0)));
    }
  const Tensor none = memory_.from(DType::f32, {1, 3}, std::vector<double>(3, -std::numeric_limits<double>::infinity())), id = ids({-1}),
               value = memory_.zeros(DType::f32, {1});
  run([&](Ops& ops) { ops.argmax(id, value, none, 0); });
  EXPECT_EQ(load_f64(id, 0), 0);
}

INSTANTIATE_TEST_SUITE_P(Ops, OpsCache, ::testing::ValuesIn(test_backends()), [](const auto& p) { return p.param.name; });

// With one segment the threads share its keys, with many they do not.
TEST(CpuCache, ThreadsDoNotChangeResults) {
  HostMemory memory;
  std::vector<CachedText> many = {{90, {200}}, {5, {90, 20}}};
  for (int i = 0; i < 40; ++i) many.push_back({1 + i % 3, {500 + 30 * i}});
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const CachedTexts& texts :
         {CachedTexts({CachedText{1, {1700}}}), CachedTexts({{3, {1100}}, {1, {300, 900}}}), CachedTexts(many)}) {
      const CacheShape s = texts.shape(4, 1, 40);
      const Tensor qkv = memory.random(dtype, {texts.tokens, s.qkv_width()}, "qkv"),
                   cache = memory.random(dtype, {texts.slots, s.cache_width()}, "cache"),
                   segments = memory.zeros(i32, {static_cast<int64_t>(texts.segments.size()), kKvSegment});
      std::memcpy(segments.data, texts.segments.data(), segments.bytes());
      const auto with_threads = [&](int threads) {
        Region temp = memory.region(Purpose::temp, size_t{64} << 20);
        CpuOps ops(temp, {.threads = threads, .isa = "auto"});
        const Tensor out = memory.zeros(dtype, {texts.tokens, s.out_width()});
        ops.cache_attention(out, qkv, cache, segments, s);
        return out;
      };
      const Tensor one = with_threads(1);
      for (const int threads : {2, 3, 8}) EXPECT_TRUE(same_bits(one, with_threads(threads))) << threads << " threads";
    }
}

// On the CPU contents can be looked at, and are.
TEST(CpuCache, RefusesWhatLiesOutside) {
  HostMemory memory;
  Region temp = memory.region(Purpose::temp, size_t{1} << 20);
  CpuOps ops(temp, {.threads = 1, .isa = "auto"});
  const CacheShape s{.heads = 2, .kv_heads = 1, .head_dim = 4, .max_queries = 3, .max_keys = 9};
  const Tensor qkv = memory.zeros(DType::f32, {3, s.qkv_width()}), cache = memory.zeros(DType::f32, {10, s.cache_width()}),
               out = memory.zeros(DType::f32, {3, s.out_width()}), table = memory.zeros(DType::f32, {5, 4});
  const auto attend = [&](const KvSegment& g) {
    const Tensor segments = memory.zeros(i32, {1, kKvSegment});
    std::memcpy(segments.data, &g, sizeof g);
    ops.cache_attention(out, qkv, cache, segments, s);
  };
  const auto ends = [](int32_t a, int32_t b) { return std::array<int32_t, kKeyRuns>{a, b, b, b}; };
  EXPECT_NO_THROW(attend({.first = 1, .count = 2, .keys = 6, .run_slot = {7, 2}, .run_end = ends(3, 9)}));
  EXPECT_THROW(attend({.first = 2, .count = 2, .keys = 6, .run_slot = {7, 2}, .run_end = ends(3, 9)}), CheckFailed);
  EXPECT_THROW(attend({.first = 1, .count = 2, .keys = 1, .run_slot = {7, 2}, .run_end = ends(3, 9)}), CheckFailed);
  EXPECT_THROW(attend({.first = 1, .count = 2, .keys = 6, .run_slot = {8, 2}, .run_end = ends(3, 9)}), CheckFailed);
  EXPECT_THROW(attend({.first = 1, .count = 2, .keys = 6, .run_slot = {7, -1}, .run_end = ends(3, 9)}), CheckFailed);
  EXPECT_THROW(attend({.first = 1, .count = 2, .keys = 6, .run_slot = {7, 2}, .run_end = ends(3, 5)}), CheckFailed);
  const auto append = [&](int32_t position, int32_t slot) {
    const Tensor p = memory.from(i32, {3}, {0, 1, static_cast<double>(position)}),
                 to = memory.from(i32, {3}, {0, 1, static_cast<double>(slot)});
    ops.cache_append(cache, qkv, table, p, to, s);
  };
  EXPECT_NO_THROW(append(4, 9));
  EXPECT_THROW(append(5, 9), CheckFailed);
  EXPECT_THROW(append(-1, 9), CheckFailed);
  EXPECT_THROW(append(4, 10), CheckFailed);
  EXPECT_THROW(append(4, -1), CheckFailed);
}

}  // namespace
}  // namespace hlat
