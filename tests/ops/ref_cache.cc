// The cache of keys and values of the reference backend, one query and one key at a time, and the likeliest token.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/ref_ops.h"

namespace hlat {
namespace {

int64_t slot_of(const KvSegment& g, int64_t key) {
  size_t r = 0;
  while (key >= g.run_end.at(r)) ++r;
  return g.run_slot[r] + key - (r > 0 ? g.run_end[r - 1] : 0);
}

struct Query {
  const double* q;
  double* out;
  int64_t keys, kv;  // that it sees, and the kv head it reads
};

// Weights exp(score) relative to the largest; out = sum of weight v / sum of weights.
void attend(const Query& x, const KvSegment& g, const Tensor& cache, const CacheShape& s) {
  const int64_t e = s.head_dim;
  std::vector<double> weight;
  for (int64_t j = 0; j < x.keys; ++j) {
    const double* k = row(cache, slot_of(g, j)) + x.kv * e;
    double dot = 0;
    for (int64_t i = 0; i < e; ++i) dot += x.q[i] * k[i];
    weight.push_back(dot / std::sqrt(static_cast<double>(e)));
  }
  const double max = *std::max_element(weight.begin(), weight.end());
  double sum = 0;
  for (double& w : weight) sum += w = std::exp(w - max);
  std::fill_n(x.out, e, 0.0);
  for (int64_t j = 0; j < x.keys; ++j) {
    const double* v = row(cache, slot_of(g, j)) + (s.kv_heads + x.kv) * e;
    const double p = weight[static_cast<size_t>(j)] / sum;
    for (int64_t i = 0; i < e; ++i) x.out[i] += p * v[i];
  }
}

}  // namespace

void RefOps::do_cache_append(Tensor cache, Tensor qkv, Tensor table, Tensor positions, Tensor slots, const CacheShape& s) {
  const AttentionShape one{.batch = 1, .seq = 1, .heads = s.heads, .kv_heads = s.kv_heads, .head_dim = s.head_dim};
  for (int64_t n = 0; n < qkv.dim(0); ++n) {
    const int64_t position = positions.as<int32_t>()[n], slot = slots.as<int32_t>()[n];
    do_rope(qkv.rows(n, n + 1), table.rows(position, position + 1), one, 1);
    for (int64_t i = 0; i < s.cache_width(); ++i) row(cache, slot)[i] = row(qkv, n)[s.heads * s.head_dim + i];
  }
}

void RefOps::do_cache_attention(Tensor out, Tensor qkv, Tensor cache, Tensor segments, const CacheShape& s, Tensor) {
  for (int64_t i = 0; i < segments.dim(0); ++i) {
    const KvSegment& g = segments.as<KvSegment>()[i];
    for (int64_t t = 0; t < g.count; ++t)
      for (int64_t h = 0; h < s.heads; ++h) {
        const Query query{.q = row(qkv, g.first + t) + h * s.head_dim,
                          .out = row(out, g.first + t) + h * s.head_dim,
                          .keys = g.keys - g.count + t + 1,
                          .kv = h / (s.heads / s.kv_heads)};
        attend(query, g, cache, s);
      }
  }
}

void RefOps::do_argmax(Tensor ids, Tensor values, Tensor logits, int64_t first) {
  for (int64_t n = 0; n < logits.dim(0); ++n) {
    const double* x = row(logits, n);
    int64_t best = 0;
    for (int64_t v = 1; v < logits.dim(1); ++v)
      if (x[v] > x[best] || (std::isnan(x[v]) && !std::isnan(x[best]))) best = v;
    ids.as<int32_t>()[n] = static_cast<int32_t>(first + best);
    row(values)[n] = x[best];
  }
}

}  // namespace hlat
