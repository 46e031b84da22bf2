// Rows of attention. The error of a weight p = exp(score - lse) is the absolute error of its score, at most
// 2 sqrt(E) units of A = max sum |q||k| / sqrt(E), plus the exponential's; it multiplies every term that p multiplies.
// In bf16 rows the weights and their gradients may be rounded to bf16 before they enter a product.
#include <algorithm>
#include <cmath>

#include "ops/conformance.h"

namespace hlat {
namespace {

// Walks every (query, key) pair the causal mask allows, with the rows of q, k, v, o and the weight of the pair.
struct Walk {
  const Twin& qkv;
  const AttentionShape& s;

  int64_t q_at(int64_t b, int64_t t, int64_t h) const { return (b * s.seq + t) * s.qkv_width() + h * s.head_dim; }
  int64_t k_at(int64_t b, int64_t t, int64_t h) const { return q_at(b, t, s.heads + h / (s.heads / s.kv_heads)); }
  int64_t v_at(int64_t b, int64_t t, int64_t h) const { return k_at(b, t, h) + s.kv_heads * s.head_dim; }
  int64_t o_at(int64_t b, int64_t t, int64_t h) const { return (b * s.seq + t) * s.out_width() + h * s.head_dim; }

  double dot(const Tensor& a, int64_t i, const Tensor& b, int64_t j) const {
    double sum = 0;
    for (int64_t e = 0; e < s.head_dim; ++e) sum += a.as<double>()[i + e] * b.as<double>()[j + e];
    return sum;
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(s.head_dim)); }

  // body(b, h, t, j, p): p is the weight of key j for query t.
  template <class Body>
  void pairs(const Twin& lse, const Body& body) const {
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t t = 0; t < s.seq; ++t)
          for (int64_t j = 0; j <= t; ++j) {
            const double score = scale() * dot(qkv.ref, q_at(b, t, h), qkv.ref, k_at(b, j, h));
            body(b, h, t, j, std::exp(score - lse.ref.as<double>()[(b * s.heads + h) * s.seq + t]));
          }
  }
};

// Units of error in the logarithm of a weight.
double weight_units(const Walk& w, const Twin& lse) {
  double largest = 0;
  w.pairs(lse, [&](int64_t b, int64_t h, int64_t t, int64_t j, double) {
    largest = std::max(largest, w.scale() * w.dot(w.qkv.mag, w.q_at(b, t, h), w.qkv.mag, w.k_at(b, j, h)));
  });
  return (2 * std::sqrt(static_cast<double>(w.s.head_dim)) + 2) * largest + 8;
}

void forward(Lab& lab, const AttentionShape& s, double std) {
  const Twin qkv = lab.input({s.tokens(), s.qkv_width()}, "qkv", std);
  const Twin out = lab.output({s.tokens(), s.out_width()}), lse = lab.stat({s.batch, s.heads, s.seq});
  lab.run([&](Ops& ops, const View& at) { ops.attention(at(out), at(lse), at(qkv), s); });
  const Walk walk{qkv, s};
  std::vector<double> magnitude(static_cast<size_t>(out.ref.numel())), one_plus_lse = to_f64(lse.ref);
  walk.pairs(lse, [&](int64_t b, int64_t h, int64_t t, int64_t j, double p) {
    for (int64_t e = 0; e < s.head_dim; ++e)
      magnitude[static_cast<size_t>(walk.o_at(b, t, h) + e)] += p * qkv.mag.as<double>()[walk.v_at(b, j, h) + e];
  });
  for (double& v : one_plus_lse) v = 1 + std::abs(v);
  const double units = weight_units(walk, lse) + sum_units(s.seq);
  lab.expect("lse", lse, {.units = units, .magnitude = one_plus_lse});
  lab.expect("out", out, {.units = 2 * units, .magnitude = magnitude, .bf16_units = 1});
}

// The backward with absolute values: dscore = p (|do||v| + |do||out|).
std::vector<double> backward_magnitude(const Walk& walk, const Twin& dout, const Twin& out, const Twin& lse) {
  const AttentionShape& s = walk.s;
  std::vector<double> magnitude(static_cast<size_t>(walk.qkv.ref.numel()));
  const auto add = [&](int64_t to, double factor, const Tensor& from, int64_t at) {
    for (int64_t e = 0; e < s.head_dim; ++e) magnitude[static_cast<size_t>(to + e)] += factor * from.as<double>()[at + e];
  };
  walk.pairs(lse, [&](int64_t b, int64_t h, int64_t t, int64_t j, double p) {
    const int64_t q = walk.q_at(b, t, h), k = walk.k_at(b, j, h), v = walk.v_at(b, j, h), o = walk.o_at(b, t, h);
    const double dscore = p * (walk.dot(dout.mag, o, walk.qkv.mag, v) + walk.dot(dout.mag, o, out.mag, o)) * walk.scale();
    add(v, p, dout.mag, o);
    add(q, dscore, walk.qkv.mag, k);
    add(k, dscore, walk.qkv.mag, q);
  });
  return magnitude;
}

// With the inverse RoPE after it: an element is made of two.
void add_partners(std::vector<double>& magnitude, const AttentionShape& s) {
  const auto head = static_cast<size_t>(s.head_dim), rotated = static_cast<size_t>(s.heads + s.kv_heads) * head;
  for (size_t row = 0; row < magnitude.size(); row += static_cast<size_t>(s.qkv_width()))
    for (size_t i = row; i < row + rotated; ++i)
      if ((i - row) % head < head / 2) magnitude[i] = magnitude[i + head / 2] = magnitude[i] + magnitude[i + head / 2];
}

void backward(Lab& lab, const AttentionShape& s, double std, bool inverse_rope) {
  const Twin qkv = lab.input({s.tokens(), s.qkv_width()}, "qkv", std), dout = lab.input({s.tokens(), s.out_width()}, "dout");
  const Twin exact_out = lab.output({s.tokens(), s.out_width()}), exact_lse = lab.stat({s.batch, s.heads, s.seq});
  lab.run([&](Ops& ops, const View& at) { ops.attention(at(exact_out), at(exact_lse), at(qkv), s); });
  const Twin out = lab.rounded(lab.dtype(), exact_out), lse = lab.rounded(DType::f32, exact_lse), dqkv = lab.output(qkv.ref.shape);
  const Twin table = lab.stat({s.seq, s.head_dim});
  if (inverse_rope) {
    lab.run([&](Ops& ops, const View& at) { ops.rope_table(at(table), {}); });
    lab.adopt(table);
  }
  lab.run([&](Ops& ops, const View& at) {
    ops.attention_bwd(at(dqkv), at(dout), at(out), at(lse), at(qkv), s, inverse_rope ? at(table) : Tensor{});
  });
  const Walk walk{qkv, s};
  const auto lse_magnitude = to_f64(lse.mag);
  const double units = weight_units(walk, lse) + *std::max_element(lse_magnitude.begin(), lse_magnitude.end()) +
                       sum_units(s.seq * s.heads / s.kv_heads) + sum_units(s.head_dim);
  std::vector<double> magnitude = backward_magnitude(walk, dout, out, lse);
  if (inverse_rope) add_partners(magnitude, s);
  lab.expect("dqkv", dqkv, {.units = units + (inverse_rope ? 3 : 0), .magnitude = magnitude, .bf16_units = inverse_rope ? 3.0 : 2.0});
}

}  // namespace

void add_attention_rows(Table& table) {
  // Sequence lengths around the 64-token tiles of a blockwise kernel, every kind of grouping, odd and large heads.
  const std::vector<AttentionShape> shapes = {{2, 1, 1, 1, 2},    {1, 5, 2, 2, 6},    {2, 64, 4, 2, 16},   {1, 65, 3, 1, 20},
                                              {1, 63, 2, 1, 3},   {1, 200, 4, 2, 64}, {2, 130, 2, 1, 128}, {3, 17, 8, 4, 8},
                                              {1, 129, 2, 2, 80}, {2, 257, 3, 3, 64}, {1, 128, 4, 1, 64},  {1, 192, 3, 1, 128}};
  for (const AttentionShape& s : shapes) {
    for (const double std : {1.0, 3.0}) {                  // 3: weights from 1 down to below f32
      if (std > 1 && s.seq * s.head_dim > 5000) continue;  // enough shapes have it
      const std::string shape = fmt::format("b{} t{} h{}/{} e{} std {}", s.batch, s.seq, s.heads, s.kv_heads, s.head_dim, std);
      table.push_back({"attention", shape, [s, std](Lab& lab) { forward(lab, s, std); }});
      table.push_back({"attention_bwd", shape, [s, std](Lab& lab) { backward(lab, s, std, false); }});
      if (s.head_dim % 2 == 0)
        table.push_back({"attention_bwd", shape + " inverse rope", [s, std](Lab& lab) { backward(lab, s, std, true); }});
    }
  }
}

}  // namespace hlat
