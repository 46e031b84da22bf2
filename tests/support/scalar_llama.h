// The Llama forward as naive scalar math, templated on the number type: double for values, std::complex<double> for
// derivatives by the complex step (f'(x) = Im f(x + ih) / h, exact to rounding). Independent of Ops: it shares only the
// data layouts. Matrices are (out, in) row by row and y = x W^T; qkv rows are [q heads | k heads | v heads], gate_up
// rows are [gate | up]. Every function is one formula; nothing is fast.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

namespace hlat::scalar {

template <class T>
using Vec = std::vector<T>;

struct Heads {
  int batch = 1, seq = 1, heads = 1, kv_heads = 1, head_dim = 2;
  int width() const { return (heads + 2 * kv_heads) * head_dim; }
};

inline double real_part(double x) { return x; }
inline double real_part(const std::complex<double>& x) { return x.real(); }

// y[n, o] = sum_i x[n, i] w[o, i]
template <class T>
Vec<T> linear(const Vec<T>& x, const Vec<T>& w, int in) {
  const size_t k = static_cast<size_t>(in);
  const size_t rows = x.size() / k;
  const size_t out = w.size() / k;
  Vec<T> y(rows * out);
  for (size_t n = 0; n < rows; ++n)
    for (size_t o = 0; o < out; ++o)
      for (size_t i = 0; i < k; ++i) y[n * out + o] += x[n * k + i] * w[o * k + i];
  return y;
}

template <class T>
Vec<T> embed(const Vec<int32_t>& ids, const Vec<T>& table, int width) {
  Vec<T> y;
  for (const int32_t id : ids) y.insert(y.end(), table.begin() + ptrdiff_t{id} * width, table.begin() + (ptrdiff_t{id} + 1) * width);
  return y;
}

// y_d = x_d w_d / sqrt(mean(x^2) + eps)
template <class T>
Vec<T> rmsnorm(const Vec<T>& x, const Vec<T>& w, double eps) {
  const size_t width = w.size();
  Vec<T> y(x.size());
  for (size_t begin = 0; begin < x.size(); begin += width) {
    T mean = 0;
    for (size_t d = 0; d < width; ++d) mean += x[begin + d] * x[begin + d] / static_cast<double>(width);
    for (size_t d = 0; d < width; ++d) y[begin + d] = x[begin + d] * w[d] / std::sqrt(mean + eps);
  }
  return y;
}

// Head elements (i, i + E/2) turn by the angle t * theta^(-2i/E), for the q and k heads.
template <class T>
Vec<T> rope(Vec<T> qkv, const Heads& s, double theta) {
  const int half = s.head_dim / 2;
  for (int n = 0; n < s.batch * s.seq; ++n) {
    for (int head = 0; head < s.heads + s.kv_heads; ++head) {
      for (int i = 0; i < half; ++i) {
        const double angle = (n % s.seq) * std::pow(theta, -2.0 * i / s.head_dim);
        T& first = qkv[static_cast<size_t>(n * s.width() + head * s.head_dim + i)];
        T& second = qkv[static_cast<size_t>(n * s.width() + head * s.head_dim + i + half)];
        const T x = first;
        const T y = second;
        first = x * std::cos(angle) - y * std::sin(angle);
        second = x * std::sin(angle) + y * std::cos(angle);
      }
    }
  }
  return qkv;
}

// softmax; the shift is by a constant (the largest real part), so it changes neither value nor derivative.
template <class T>
Vec<T> softmax(Vec<T> x) {
  double shift = real_part(x[0]);
  for (const T& v : x) shift = std::max(shift, real_part(v));
  T sum = 0;
  for (T& v : x) sum += v = std::exp(v - shift);
  for (T& v : x) v /= sum;
  return x;
}

// out[b, t, h] = sum over j <= t of softmax_j(q[t, h] . k[j, g] / sqrt(E)) v[j, g], with g the kv head of h
template <class T>
Vec<T> attention(const Vec<T>& qkv, const Heads& s) {
  const int dim = s.head_dim;
  const auto at = [&](int b, int t, int head, int e) { return qkv[static_cast<size_t>((b * s.seq + t) * s.width() + head * dim + e)]; };
  Vec<T> out;
  for (int b = 0; b < s.batch; ++b) {
    for (int t = 0; t < s.seq; ++t) {
      for (int h = 0; h < s.heads; ++h) {
        const int group = h * s.kv_heads / s.heads;
        Vec<T> weight(static_cast<size_t>(t) + 1);
        for (int j = 0; j <= t; ++j)
          for (int e = 0; e < dim; ++e)
            weight[static_cast<size_t>(j)] += at(b, t, h, e) * at(b, j, s.heads + group, e) / std::sqrt(double(dim));
        weight = softmax(weight);
        for (int e = 0; e < dim; ++e) {
          T sum = 0;
          for (int j = 0; j <= t; ++j) sum += weight[static_cast<size_t>(j)] * at(b, j, s.heads + s.kv_heads + group, e);
          out.push_back(sum);
        }
      }
    }
  }
  return out;
}

// y = gate / (1 + exp(-gate)) * up
template <class T>
Vec<T> swiglu(const Vec<T>& gate_up, int ffn) {
  const size_t f = static_cast<size_t>(ffn);
  Vec<T> y;
  for (size_t begin = 0; begin < gate_up.size(); begin += 2 * f)
    for (size_t i = 0; i < f; ++i) y.push_back(gate_up[begin + i] / (1.0 + std::exp(-gate_up[begin + i])) * gate_up[begin + f + i]);
  return y;
}

template <class T>
Vec<T> add(Vec<T> a, const Vec<T>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// Sum over rows with target >= 0 of -log softmax(logits)[target].
template <class T>
T cross_entropy_sum(const Vec<T>& logits, const Vec<int32_t>& targets, int vocab) {
  T loss = 0;
  for (size_t n = 0; n < targets.size(); ++n) {
    if (targets[n] < 0) continue;
    const auto begin = logits.begin() + static_cast<ptrdiff_t>(n) * vocab;
    loss -= std::log(softmax(Vec<T>(begin, begin + vocab))[static_cast<size_t>(targets[n])]);
  }
  return loss;
}

struct Config {
  int layers = 1, hidden = 8, heads = 2, kv_heads = 1, head_dim = 4, ffn = 12, vocab = 11;
  double theta = 10000.0, eps = 1e-5;
  bool tied = false;
};

template <class T>
struct Layer {
  Vec<T> attn_norm;  // (D)
  Vec<T> qkv;        // ((H + 2K) E, D)
  Vec<T> o;          // (D, H E)
  Vec<T> ffn_norm;   // (D)
  Vec<T> gate_up;    // (2F, D)
  Vec<T> down;       // (D, F)
};

template <class T>
struct Params {
  Vec<T> embed;  // (V, D)
  Vec<Layer<T>> layers;
  Vec<T> final_norm;  // (D)
  Vec<T> head;        // (V, D); not read when tied
};

// One pre-norm block: h = x + attention part, y = h + ffn part.
template <class T>
Vec<T> block(const Config& c, const Layer<T>& p, const Vec<T>& x, int batch, int seq) {
  const Heads s{.batch = batch, .seq = seq, .heads = c.heads, .kv_heads = c.kv_heads, .head_dim = c.head_dim};
  const Vec<T> qkv = rope(linear(rmsnorm(x, p.attn_norm, c.eps), p.qkv, c.hidden), s, c.theta);
  const Vec<T> h = add(x, linear(attention(qkv, s), p.o, c.heads * c.head_dim));
  const Vec<T> gate_up = linear(rmsnorm(h, p.ffn_norm, c.eps), p.gate_up, c.hidden);
  return add(h, linear(swiglu(gate_up, c.ffn), p.down, c.ffn));
}

template <class T>
Vec<T> logits(const Config& c, const Params<T>& p, const Vec<int32_t>& ids, int batch, int seq) {
  Vec<T> x = embed(ids, p.embed, c.hidden);
  for (const Layer<T>& layer : p.layers) x = block(c, layer, x, batch, seq);
  return linear(rmsnorm(x, p.final_norm, c.eps), c.tied ? p.embed : p.head, c.hidden);
}

// Mean cross-entropy over the targets that are not negative.
template <class T>
T loss(const Config& c, const Params<T>& p, const Vec<int32_t>& ids, const Vec<int32_t>& targets, int batch, int seq) {
  int counted = 0;
  for (const int32_t t : targets) counted += t >= 0;
  return cross_entropy_sum(logits(c, p, ids, batch, seq), targets, c.vocab) / static_cast<double>(counted);
}

// Every parameter vector once, in a fixed order: visit(name, vec). Drives checks over all parameters.
template <class P, class Visit>
void for_each_param(const Config& c, P& p, const Visit& visit) {
  visit("embed", p.embed);
  for (auto& layer : p.layers) {
    visit("attn_norm", layer.attn_norm);
    visit("qkv", layer.qkv);
    visit("o", layer.o);
    visit("ffn_norm", layer.ffn_norm);
    visit("gate_up", layer.gate_up);
    visit("down", layer.down);
  }
  visit("final_norm", p.final_norm);
  if (!c.tied) visit("head", p.head);
}

}  // namespace hlat::scalar
