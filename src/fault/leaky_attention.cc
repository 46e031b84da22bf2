#include "fault/leaky_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/bf16.h"
#include "ops/download.h"

namespace hlat::fault {

namespace {

constexpr int64_t kAhead = 1;  // tokens after its own that a query sees

using Values = std::vector<float>;

void put(Device& device, const Tensor& t, const Values& values) {
  const auto upload = [&]<class T>(T (*convert)(float)) {
    std::vector<T> as(values.size());
    std::transform(values.begin(), values.end(), as.begin(), convert);
    device.upload(t, as.data());
  };
  if (t.dtype == DType::bf16) return upload(+[](float x) { return to_bf16(x); });
  if (t.dtype == DType::f64) return upload(+[](float x) { return static_cast<double>(x); });
  device.upload(t, values.data());
}

// One query: where it, the keys and the values that it sees lie in qkv, and where its output does.
struct Query {
  const AttentionShape& s;
  int64_t sequence, head, token;

  int64_t keys() const { return std::min(token + 1 + kAhead, s.seq); }
  int64_t kv_head() const { return head / (s.heads / s.kv_heads); }
  int64_t at(int64_t t, int64_t block) const { return (sequence * s.seq + t) * s.qkv_width() + block * s.head_dim; }
  int64_t q() const { return at(token, head); }
  int64_t k(int64_t t) const { return at(t, s.heads + kv_head()); }
  int64_t v(int64_t t) const { return at(t, s.heads + s.kv_heads + kv_head()); }
  int64_t out() const { return ((sequence * s.seq + token) * s.heads + head) * s.head_dim; }
  int64_t lse() const { return (sequence * s.heads + head) * s.seq + token; }
  float scale() const { return 1 / std::sqrt(static_cast<float>(s.head_dim)); }
};

template <class Body>
void each_query(const AttentionShape& s, const Body& body) {
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t t = 0; t < s.seq; ++t) body(Query{.s = s, .sequence = b, .head = h, .token = t});
}

float dot(const float* a, const float* b, int64_t n) { return std::inner_product(a, a + n, b, 0.0f); }

void add_scaled(float* y, const float* x, float factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

// The softmax over the keys that it sees; returns the log-sum-exp.
float weights_of(const Query& query, const float* qkv, Values& p) {
  const int64_t n = query.keys();
  p.resize(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) p[static_cast<size_t>(j)] = query.scale() * dot(qkv + query.q(), qkv + query.k(j), query.s.head_dim);
  const float largest = *std::max_element(p.begin(), p.end());
  float sum = 0;
  for (float& x : p) sum += x = std::exp(x - largest);
  for (float& x : p) x /= sum;
  return largest + std::log(sum);
}

}  // namespace

void LeakyAttention::forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s) const {
  const Values in = download_f32(*device_, qkv);
  Values y(static_cast<size_t>(out.numel())), stats(static_cast<size_t>(lse.numel())), p;
  each_query(s, [&](const Query& query) {
    stats[static_cast<size_t>(query.lse())] = weights_of(query, in.data(), p);
    for (int64_t j = 0; j < query.keys(); ++j)
      add_scaled(y.data() + query.out(), in.data() + query.v(j), p[static_cast<size_t>(j)], s.head_dim);
  });
  put(*device_, out, y);
  put(*device_, lse, stats);
}

void LeakyAttention::backward(Tensor dqkv, Tensor dout, Tensor qkv, const AttentionShape& s) const {
  const Values in = download_f32(*device_, qkv), dy = download_f32(*device_, dout);
  Values d(static_cast<size_t>(dqkv.numel())), p, dp;
  each_query(s, [&](const Query& query) {
    weights_of(query, in.data(), p);
    const float* own = dy.data() + query.out();
    dp.resize(p.size());
    for (size_t j = 0; j < p.size(); ++j) dp[j] = dot(own, in.data() + query.v(static_cast<int64_t>(j)), s.head_dim);
    const float mean = dot(p.data(), dp.data(), static_cast<int64_t>(p.size()));
    for (size_t j = 0; j < p.size(); ++j) {
      const auto key = static_cast<int64_t>(j);
      const float dscore = query.scale() * p[j] * (dp[j] - mean);
      add_scaled(d.data() + query.v(key), own, p[j], s.head_dim);
      add_scaled(d.data() + query.q(), in.data() + query.k(key), dscore, s.head_dim);
      add_scaled(d.data() + query.k(key), in.data() + query.q(), dscore, s.head_dim);
    }
  });
  put(*device_, dqkv, d);
}

}  // namespace hlat::fault
