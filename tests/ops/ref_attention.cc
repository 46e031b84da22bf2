// Causal attention of the reference backend, one query at a time. Row n of qkv is [q heads | k heads | v heads];
// query head h reads kv head h / (H / K).
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/ref_ops.h"

namespace hlat {
namespace {

// Finds the q, k and v vectors in packed rows (of activations or of their gradients).
struct Packed {
  Tensor qkv;
  AttentionShape s;
  double* q(int64_t b, int64_t h, int64_t t) const { return row(qkv, b * s.seq + t) + h * s.head_dim; }
  double* k(int64_t b, int64_t h, int64_t t) const { return row(qkv, b * s.seq + t) + (s.heads + kv_head(h)) * s.head_dim; }
  double* v(int64_t b, int64_t h, int64_t t) const { return row(qkv, b * s.seq + t) + (s.heads + s.kv_heads + kv_head(h)) * s.head_dim; }
  int64_t kv_head(int64_t h) const { return h / (s.heads / s.kv_heads); }
};

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(double* y, double scale, const double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += scale * x[i];
}

double score_scale(const AttentionShape& s) { return 1 / std::sqrt(static_cast<double>(s.head_dim)); }

double* head_row(const Tensor& out, const AttentionShape& s, int64_t b, int64_t h, int64_t t) {
  return row(out, b * s.seq + t) + h * s.head_dim;
}

template <class Body>
void each_query(const AttentionShape& s, const Body& body) {
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t t = 0; t < s.seq; ++t) body(b, h, t);
}

}  // namespace

void RefOps::do_attention(Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor) {
  const Packed x{qkv, s};
  each_query(s, [&](int64_t b, int64_t h, int64_t t) {
    std::vector<double> score(static_cast<size_t>(t + 1));
    for (int64_t j = 0; j <= t; ++j) score[static_cast<size_t>(j)] = score_scale(s) * dot(x.q(b, h, t), x.k(b, h, j), s.head_dim);
    const double max = *std::max_element(score.begin(), score.end());
    double sum = 0;
    for (const double v : score) sum += std::exp(v - max);
    const double log_sum = max + std::log(sum);
    double* o = head_row(out, s, b, h, t);
    std::fill_n(o, s.head_dim, 0.0);
    for (int64_t j = 0; j <= t; ++j) add_scaled(o, std::exp(score[static_cast<size_t>(j)] - log_sum), x.v(b, h, j), s.head_dim);
    lse.as<double>()[(b * s.heads + h) * s.seq + t] = log_sum;
  });
}

// With p = exp(score - lse): dv = p do, dscore = p (do . v - do . out), dq = dscore k / sqrt(E), dk = dscore q / sqrt(E).
void RefOps::do_attention_bwd(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor) {
  do_fill(dqkv, 0);
  const Packed x{qkv, s};
  const Packed dx{dqkv, s};
  const int64_t e = s.head_dim;
  each_query(s, [&](int64_t b, int64_t h, int64_t t) {
    const double* d = head_row(dout, s, b, h, t);
    const double delta = dot(d, head_row(out, s, b, h, t), e);
    for (int64_t j = 0; j <= t; ++j) {
      const double score = score_scale(s) * dot(x.q(b, h, t), x.k(b, h, j), e);
      const double p = std::exp(score - lse.as<double>()[(b * s.heads + h) * s.seq + t]);
      const double dscore = p * (dot(d, x.v(b, h, j), e) - delta);
      add_scaled(dx.v(b, h, j), p, d, e);
      add_scaled(dx.q(b, h, t), score_scale(s) * dscore, x.k(b, h, j), e);
      add_scaled(dx.k(b, h, j), score_scale(s) * dscore, x.q(b, h, t), e);
    }
  });
}

}  // namespace hlat
