// Rows of the ops on a cache of keys and values. Tolerances are those of attention and RoPE in the files beside this one: the same
// arithmetic, on keys that lie elsewhere. What belongs to no text of the call is NaN in the cache, and shows if it is read.
#include <algorithm>
#include <cmath>

#include "ops/conformance.h"
#include "support/cached_texts.h"

namespace hlat {
namespace {

struct Heads {
  int64_t heads, kv_heads, head_dim;
  std::string str() const { return fmt::format("h{}/{} e{}", heads, kv_heads, head_dim); }
};

Twin filled_cache(Lab& lab, const CachedTexts& texts, const CacheShape& s, double std) {
  const std::vector<double> random = normals(texts.slots * s.cache_width(), "cache");
  std::vector<double> values(random.size(), std::nan(""));
  const auto width = static_cast<size_t>(s.cache_width());
  for (const KvSegment& g : texts.segments)
    for (int64_t j = 0; j < g.keys; ++j) {
      const size_t at = static_cast<size_t>(CachedTexts::slot(g, j)) * width;
      for (size_t i = at; i < at + width; ++i) values[i] = std * random[i];
    }
  return lab.values({texts.slots, s.cache_width()}, values);
}

// What errors of the output are measured in: for each element the sum of |weight v|, and the largest sum of |q||k| / sqrt(E) of any score.
struct Magnitudes {
  std::vector<double> out;
  double score = 0;

  Magnitudes(const Twin& result, const Twin& qkv, const Twin& cache, const CachedTexts& texts, const CacheShape& s)
      : out(static_cast<size_t>(result.ref.numel())) {
    for (const KvSegment& g : texts.segments)
      for (int64_t t = 0; t < g.count; ++t)
        for (int64_t h = 0; h < s.heads; ++h) add_query(qkv, cache, s, g, t, h);
  }

 private:
  void add_query(const Twin& qkv, const Twin& cache, const CacheShape& s, const KvSegment& g, int64_t t, int64_t h) {
    const int64_t e = s.head_dim, keys = g.keys - g.count + t + 1, kv = h / (s.heads / s.kv_heads);
    std::vector<double> weight(static_cast<size_t>(keys));
    double max = -INFINITY, sum = 0;
    const double* q = row(qkv.ref, g.first + t) + h * e;
    const double scale = 1 / std::sqrt(static_cast<double>(e));
    for (int64_t j = 0; j < keys; ++j) {
      const double* k = row(cache.ref, CachedTexts::slot(g, j)) + kv * e;
      double dot = 0, absolute = 0;
      for (int64_t i = 0; i < e; ++i) {
        dot += q[i] * k[i];
        absolute += std::abs(q[i] * k[i]);
      }
      weight[static_cast<size_t>(j)] = scale * dot;
      max = std::max(max, scale * dot);
      score = std::max(score, scale * absolute);
    }
    for (double& w : weight) sum += w = std::exp(w - max);
    double* to = out.data() + (g.first + t) * s.out_width() + h * e;
    for (int64_t j = 0; j < keys; ++j) {
      const double* v = row(cache.mag, CachedTexts::slot(g, j)) + (s.kv_heads + kv) * e;
      const double p = weight[static_cast<size_t>(j)] / sum;
      for (int64_t i = 0; i < e; ++i) to[i] += p * v[i];
    }
  }
};

void cache_attention(Lab& lab, const std::vector<CachedText>& list, const Heads& heads, double std) {
  const CachedTexts texts(list);
  const CacheShape s = texts.shape(heads.heads, heads.kv_heads, heads.head_dim);
  const Twin qkv = lab.input({texts.tokens, s.qkv_width()}, "qkv", std), cache = filled_cache(lab, texts, s, std);
  const Twin out = lab.input({texts.tokens, s.out_width()}, "out"), segments = lab.segments(texts.segments);
  lab.run([&](Ops& ops, const View& at) { ops.cache_attention(at(out), at(qkv), at(cache), at(segments), s); });
  const Magnitudes magnitude(out, qkv, cache, texts, s);
  const double weight_units = (2 * std::sqrt(static_cast<double>(s.head_dim)) + 2) * magnitude.score + 8;
  lab.expect("out", out, {.units = 2 * (weight_units + sum_units(s.max_keys)), .magnitude = magnitude.out, .bf16_units = 1});
  int64_t end = 0;
  for (const KvSegment& g : texts.segments) {
    lab.expect("rows of no segment", out.rows(end, g.first), {.rounded = false});
    end = g.first + g.count;
  }
}

// Positions and slots in no order, some slots left as they are.
void cache_append(Lab& lab, int64_t tokens, const Heads& heads) {
  const CacheShape s{.heads = heads.heads, .kv_heads = heads.kv_heads, .head_dim = heads.head_dim};
  const int64_t longest = tokens + 9, slots = 2 * tokens + 3;
  std::vector<int32_t> position, slot;
  for (int64_t n = 0; n < tokens; ++n) {
    position.push_back(static_cast<int32_t>((n * n + 3) % longest));
    slot.push_back(static_cast<int32_t>(slots - 2 - 2 * n));
  }
  const Twin qkv = lab.input({tokens, s.qkv_width()}, "qkv"), cache = lab.input({slots, s.cache_width()}, "cache");
  const Twin table = lab.stat({longest, s.head_dim}), positions = lab.ids(position), to = lab.ids(slot);
  const std::vector<double> before = to_f64(qkv.ref);
  lab.run([&](Ops& ops, const View& at) { ops.rope_table(at(table), {}); });
  lab.adopt(table);
  lab.run([&](Ops& ops, const View& at) { ops.cache_append(at(cache), at(qkv), at(table), at(positions), at(to), s); });

  const int64_t half = s.head_dim / 2, k_begin = s.heads * s.head_dim, v_begin = k_begin + s.kv_heads * s.head_dim;
  std::vector<double> magnitude(before.size()), cached(static_cast<size_t>(cache.ref.numel()));
  for (int64_t n = 0; n < tokens; ++n) {
    double* of_token = magnitude.data() + n * s.qkv_width();
    for (int64_t i = 0; i < v_begin; ++i) {
      const double* x = before.data() + n * s.qkv_width() + i;
      of_token[i] = std::abs(*x) + std::abs(x[i % s.head_dim < half ? half : -half]);
    }
    std::copy_n(of_token + k_begin, s.cache_width(), cached.data() + slot[static_cast<size_t>(n)] * s.cache_width());
  }
  lab.expect("qkv", qkv, {.units = 3, .magnitude = magnitude});
  lab.expect("v heads", qkv.cols(v_begin, s.qkv_width()), {.rounded = false});
  lab.expect("cache", cache, {.units = 3, .magnitude = cached});
  for (int64_t r = 0; r < slots; ++r)
    if (std::find(slot.begin(), slot.end(), r) == slot.end()) lab.expect("slots of nobody", cache.rows(r, r + 1), {.rounded = false});
}

struct Case {
  const char* name;
  std::vector<CachedText> texts;
};

// Lengths around tiles of 64 keys, around parts of 512 and around the number of queries that a kernel takes for few.
std::vector<Case> cases() {
  return {
      {"decode", {{1, {1}}, {1, {2}}, {1, {63}}, {1, {64}}, {1, {65}}, {1, {200}}, {1, {1, 1, 1, 1}}, {1, {40, 30, 60}}}},
      {"decode long", {{1, {700}}, {1, {512}}, {1, {513}}, {1, {100, 400, 300, 225}}}},
      {"decode one", {{1, {1500}}}},
      {"few at an offset", {{2, {70}}, {3, {64}}, {4, {66}}, {5, {65}}, {8, {70}}, {2, {513}}, {3, {514}}, {4, {100, 300, 113}}}},
      {"many at an offset", {{17, {40, 50}}, {64, {64, 64}}, {65, {140}}, {30, {31}}, {70, {10, 20, 100, 5}}, {33, {97}}}},
      {"whole", {{1, {1}}, {4, {4}}, {5, {5}}, {63, {63}}, {64, {64}}, {65, {65}}, {130, {100, 30}}}},
      {"shared prefix",
       {{20, {150, 20}}, {1, {150, 1}, 0, 0}, {7, {150, 7}, 0, 0}, {33, {150, 40}, 0, 0}, {1, {150, 30, 1}, 0, 0}, {5, {60, 5}}}},
      {"idle rows and room", {{1, {100}, 3}, {40, {90}, 2, -1, 30}, {1, {20, 50}, 5, -1, 7}, {0, {10}, 1}, {12, {12}, 0, -1, 1}}},
  };
}

}  // namespace

void add_cache_rows(Table& table) {
  const std::vector<Heads> all = {{2, 2, 16}, {4, 2, 64}, {8, 1, 80}, {2, 1, 128}, {3, 1, 6}, {2, 1, 34}, {1, 1, 2}};
  for (const Case& c : cases())
    for (const Heads& heads : all)
      for (const double std : {1.0, 3.0}) {
        if (std > 1 && heads.head_dim > 34) continue;  // enough shapes have it
        table.push_back({"cache_attention", fmt::format("{} {} std {}", c.name, heads.str(), std),
                         [=](Lab& lab) { cache_attention(lab, c.texts, heads, std); }});
      }
  // More queries of one kv head than a tile has rows.
  const std::vector<CachedText> few = {{1, {70}}, {2, {30, 40}}, {3, {5}}};
  table.push_back({"cache_attention", "h72/1 e8", [=](Lab& lab) { cache_attention(lab, few, {72, 1, 8}, 1); }});
  for (const int64_t tokens : {1, 2, 33, 100})
    for (const Heads& heads : all)
      table.push_back({"cache_append", fmt::format("n{} {}", tokens, heads.str()), [=](Lab& lab) { cache_append(lab, tokens, heads); }});
}

}  // namespace hlat
