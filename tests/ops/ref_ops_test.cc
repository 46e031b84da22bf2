// The reference backend against the scalar reference: values in double, and every element of every backward against the
// complex-step derivative of the scalar forward.
//
// Tolerance. The complex step subtracts nothing, so with h = 1e-30 its error is the rounding of one complex forward, and
// both sides carry only double rounding, 1.1e-16 times the length of their sums (below 1000 terms here), relative to the
// largest element of the tensor: single elements may cancel. 1e-12 leaves room for that and is far below any wrong term.
#include <gtest/gtest.h>

#include <complex>

#include "ops/ref_ops.h"
#include "support/host_memory.h"
#include "support/scalar_llama.h"
#include "tensor/columns.h"

namespace hlat {
namespace {

using Values = std::vector<double>;
using Complex = std::complex<double>;
using ComplexValues = std::vector<Complex>;

constexpr double kTolerance = 1e-12;
constexpr double kStep = 1e-30;

ComplexValues widen(const Values& x) { return {x.begin(), x.end()}; }

// The gradient of a complex-valued function of a vector, one element at a time.
template <class Loss>
Values complex_step(const Values& x, const Loss& loss) {
  Values gradient;
  ComplexValues z = widen(x);
  for (Complex& element : z) {
    element.imag(kStep);
    gradient.push_back(loss(z).imag() / kStep);
    element.imag(0);
  }
  return gradient;
}

// The loss that makes `dy` the gradient of y.
Complex weighted(const ComplexValues& y, const Values& dy) {
  Complex sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
  return sum;
}

void expect_close(const Values& actual, const Values& expected, const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0;
  for (const double v : expected) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], kTolerance * largest) << what << " element " << i;
}

Values sum_of(Values a, const Values& b) { return scalar::add(std::move(a), b); }

class RefOpsTest : public ::testing::Test {
 protected:
  Tensor random(const Shape& shape, std::string_view name) { return memory_.random(DType::f64, shape, name); }
  Tensor zeros(const Shape& shape) { return memory_.zeros(DType::f64, shape); }
  Tensor ids(const std::vector<int32_t>& values) {
    return memory_.from(DType::i32, {static_cast<int64_t>(values.size())}, Values(values.begin(), values.end()));
  }

  HostMemory memory_;
  Region temp_;
  RefOps ops_{temp_};
};

TEST_F(RefOpsTest, Embed) {
  const std::vector<int32_t> tokens = {3, 0, 3, 6, 3};
  const Tensor table = random({7, 4}, "table");
  const Tensor y = zeros({5, 4});
  const Tensor dy = random({5, 4}, "dy");
  const Tensor dtable = random({7, 4}, "dtable");
  const Values before = to_f64(dtable);
  ops_.embed(y, ids(tokens), table, 0);
  ops_.embed_bwd(dtable, ids(tokens), dy, 0);
  expect_close(to_f64(y), scalar::embed(tokens, to_f64(table), 4), "y");
  const Values gradient =
      complex_step(to_f64(table), [&](const ComplexValues& z) { return weighted(scalar::embed(tokens, z, 4), to_f64(dy)); });
  expect_close(to_f64(dtable), sum_of(before, gradient), "dtable");
}

// The three products of a linear layer: y = x W^T, dx = dy W, dW += dy^T x.
TEST_F(RefOpsTest, Matmul) {
  const int64_t rows = 3, in = 5, out = 4;
  const Tensor x = random({rows, in}, "x");
  const Tensor w = random({out, in}, "w");
  const Tensor dy = random({rows, out}, "dy");
  const Tensor y = zeros({rows, out});
  const Tensor dx = zeros({rows, in});
  const Tensor dw = random({out, in}, "dw");
  const Values before = to_f64(dw);
  ops_.matmul(y, x, w, {.trans_b = true});
  ops_.matmul(dx, dy, w, {});
  ops_.matmul(dw, dy, x, {.trans_a = true, .accumulate = true});
  expect_close(to_f64(y), scalar::linear(to_f64(x), to_f64(w), in), "y");
  const auto loss = [&](const ComplexValues& a, const ComplexValues& b) { return weighted(scalar::linear(a, b, in), to_f64(dy)); };
  expect_close(to_f64(dx), complex_step(to_f64(x), [&](const ComplexValues& z) { return loss(z, widen(to_f64(w))); }), "dx");
  const Values gradient = complex_step(to_f64(w), [&](const ComplexValues& z) { return loss(widen(to_f64(x)), z); });
  expect_close(to_f64(dw), sum_of(before, gradient), "dw");
  // Both transposed: (x^T) taken as a, (w) as b^T, through explicitly transposed copies.
  Values xt, wt;
  for (int64_t i = 0; i < in; ++i)
    for (int64_t n = 0; n < rows; ++n) xt.push_back(row(x, n)[i]);
  const Tensor again = zeros({rows, out});
  ops_.matmul(again, memory_.from(DType::f64, {in, rows}, xt), w, {.trans_a = true, .trans_b = true});
  expect_close(to_f64(again), to_f64(y), "both transposed");
}

TEST_F(RefOpsTest, RmsNorm) {
  struct Case {
    int64_t rows, width;
    double eps;
  };
  // Width 1 with a small eps would cancel to nothing: there dx is eps * rstd^3 * dy * w.
  for (const Case c : {Case{1, 1, 0.5}, Case{3, 5, 1e-5}, Case{2, 8, 0.5}}) {
    for (const bool add_dx : {false, true}) {
      for (const bool accumulate_dw : {false, true}) {
        const Tensor x = random({c.rows, c.width}, "x"), w = random({c.width}, "w"), dy = random({c.rows, c.width}, "dy");
        const Tensor y = zeros({c.rows, c.width}), rstd = zeros({c.rows});
        const Tensor dx = random({c.rows, c.width}, "dx"), dw = random({c.width}, "dw");
        const Values dx0 = add_dx ? to_f64(dx) : Values(to_f64(dx).size(), 0.0);
        const Values dw0 = accumulate_dw ? to_f64(dw) : Values(to_f64(dw).size(), 0.0);
        ops_.rmsnorm(y, rstd, x, w, c.eps);
        ops_.rmsnorm_bwd(dx, dw, dy, x, w, rstd, {.add_dx = add_dx, .accumulate_dw = accumulate_dw});
        expect_close(to_f64(y), scalar::rmsnorm(to_f64(x), to_f64(w), c.eps), "y");
        const auto loss = [&](const ComplexValues& a, const ComplexValues& b) {
          return weighted(scalar::rmsnorm(a, b, c.eps), to_f64(dy));
        };
        const Values gx = complex_step(to_f64(x), [&](const ComplexValues& z) { return loss(z, widen(to_f64(w))); });
        const Values gw = complex_step(to_f64(w), [&](const ComplexValues& z) { return loss(widen(to_f64(x)), z); });
        expect_close(to_f64(dx), sum_of(dx0, gx), "dx");
        expect_close(to_f64(dw), sum_of(dw0, gw), "dw");
      }
    }
  }
}

TEST_F(RefOpsTest, AddRmsNormIsAddThenNorm) {
  const Tensor x = random({3, 6}, "x"), delta = random({3, 6}, "delta"), w = random({6}, "w");
  const Tensor y = zeros({3, 6}), rstd = zeros({3});
  const Values sum = scalar::add(to_f64(x), to_f64(delta));
  ops_.add_rmsnorm(x, y, rstd, x, delta, w, 1e-5);
  expect_close(to_f64(x), sum, "sum");
  expect_close(to_f64(y), scalar::rmsnorm(sum, to_f64(w), 1e-5), "y");
}

const std::vector<scalar::Heads> kHeads = {
    {.batch = 2, .seq = 5, .heads = 2, .kv_heads = 2, .head_dim = 4},  // multi-head
    {.batch = 1, .seq = 6, .heads = 4, .kv_heads = 2, .head_dim = 2},  // grouped
    {.batch = 2, .seq = 4, .heads = 3, .kv_heads = 1, .head_dim = 6},  // multi-query
    {.batch = 2, .seq = 1, .heads = 1, .kv_heads = 1, .head_dim = 2},  // one token
};

AttentionShape shape_of(const scalar::Heads& h) {
  return {.batch = h.batch, .seq = h.seq, .heads = h.heads, .kv_heads = h.kv_heads, .head_dim = h.head_dim};
}

TEST_F(RefOpsTest, Rope) {
  for (const scalar::Heads& h : kHeads) {
    const AttentionShape s = shape_of(h);
    const double theta = 100;
    const Tensor table = zeros({s.seq + 1, s.head_dim});  // longer than needed, which is allowed
    const Tensor x = random({s.tokens(), s.qkv_width()}, "qkv"), dx = random({s.tokens(), s.qkv_width()}, "dqkv");
    const Values before = to_f64(x), dy = to_f64(dx);
    ops_.rope_table(table, {.theta = theta});
    ops_.rope(x, table, s, 1);
    ops_.rope(dx, table, s, -1);
    expect_close(to_f64(x), scalar::rope(before, h, theta), "rotated");
    expect_close(to_f64(dx), complex_step(before, [&](const ComplexValues& z) { return weighted(scalar::rope(z, h, theta), dy); }),
                 "gradient");
    ops_.rope(x, table, s, -1);
    expect_close(to_f64(x), before, "inverse");
  }
}

TEST_F(RefOpsTest, Attention) {
  for (const scalar::Heads& h : kHeads) {
    const AttentionShape s = shape_of(h);
    const Tensor qkv = random({s.tokens(), s.qkv_width()}, "qkv"), dout = random({s.tokens(), s.out_width()}, "dout");
    const Tensor out = zeros({s.tokens(), s.out_width()}), lse = zeros({s.batch, s.heads, s.seq}), dqkv = random(qkv.shape, "dqkv");
    ops_.attention(out, lse, qkv, s);
    ops_.attention_bwd(dqkv, dout, out, lse, qkv, s);
    expect_close(to_f64(out), scalar::attention(to_f64(qkv), h), "out");
    const auto loss = [&](const ComplexValues& z) { return weighted(scalar::attention(z, h), to_f64(dout)); };
    expect_close(to_f64(dqkv), complex_step(to_f64(qkv), loss), "dqkv");
  }
}

TEST_F(RefOpsTest, SwiGlu) {
  const Tensor gu = random({3, 10}, "gu"), y = zeros({3, 5}), dy = random({3, 5}, "dy"), dgu = zeros({3, 10});
  ops_.swiglu(y, gu);
  ops_.swiglu_bwd(dgu, dy, gu);
  expect_close(to_f64(y), scalar::swiglu(to_f64(gu), 5), "y");
  const auto loss = [&](const ComplexValues& z) { return weighted(scalar::swiglu(z, 5), to_f64(dy)); };
  const Values gradient = complex_step(to_f64(gu), loss);
  expect_close(to_f64(dgu), gradient, "dgu");
  ops_.swiglu_bwd(gu, dy, gu);
  expect_close(to_f64(gu), gradient, "dgu in place");
}

TEST_F(RefOpsTest, CrossEntropy) {
  const std::vector<int32_t> labels = {4, -1, 0, 6};
  const double scale = 1.0 / 3;
  const Tensor logits = random({4, 7}, "logits"), stats = zeros({4, 3}), loss_sum = zeros({1}), dlogits = zeros({4, 7});
  ops_.cross_entropy_partial(stats, logits, ids(labels), 0);
  ops_.cross_entropy_finish(loss_sum, stats, ids(labels));
  ops_.cross_entropy_bwd(dlogits, logits, stats, ids(labels), 0, scale);
  const auto loss = [&](const auto& z) { return scalar::cross_entropy_sum(z, labels, 7) * scale; };
  expect_close({*row(loss_sum) * scale}, {loss(to_f64(logits))}, "loss");
  const Values gradient = complex_step(to_f64(logits), loss);
  expect_close(to_f64(dlogits), gradient, "dlogits");
  ops_.cross_entropy_bwd(logits, logits, stats, ids(labels), 0, scale);
  expect_close(to_f64(logits), gradient, "dlogits in place");
}

// Uneven shards of the vocabulary, merged: the statistics, and so the loss and the gradient, are those of the whole.
TEST_F(RefOpsTest, CrossEntropyOfShards) {
  const std::vector<int32_t> labels = {4, -1, 0, 6};
  const std::vector<int64_t> bounds = {0, 3, 4, 7};
  const Tensor logits = random({4, 7}, "logits"), parts = zeros({3, 4, 3}), stats = zeros({4, 3}), loss_sum = zeros({1});
  for (size_t p = 0; p < 3; ++p) {
    const Tensor view = columns(logits, bounds[p], bounds[p + 1]), shard = memory_.from(DType::f64, view.shape, to_f64(view));
    const Tensor part = Tensor::contiguous(row(parts, static_cast<int64_t>(p)), DType::f64, {4, 3});
    ops_.cross_entropy_partial(part, shard, ids(labels), bounds[p]);
  }
  ops_.cross_entropy_merge(stats, parts);
  ops_.cross_entropy_finish(loss_sum, stats, ids(labels));
  expect_close({*row(loss_sum)}, {scalar::cross_entropy_sum(to_f64(logits), labels, 7)}, "loss");
  const Tensor whole = zeros({4, 3});
  ops_.cross_entropy_partial(whole, logits, ids(labels), 0);
  expect_close(to_f64(stats), to_f64(whole), "stats");
}

// The ops chained by hand are the model: the whole forward agrees with the scalar Llama.
TEST_F(RefOpsTest, ChainedOpsAreTheScalarLlama) {
  const int batch = 2, seq = 5;
  const std::vector<int32_t> tokens = {1, 4, 2, 10, 3, 0, 0, 7, 9, 5}, labels = {4, 2, 10, 3, -1, 0, 7, 9, 5, 6};
  for (const bool tied : {false, true}) {
    const scalar::Config c{.layers = 2, .hidden = 6, .heads = 3, .kv_heads = 1, .head_dim = 2, .ffn = 7, .vocab = 11, .tied = tied};
    const scalar::Layer<double> layer{.attn_norm = normals(6, "an"),
                                      .qkv = normals(60, "qkv"),
                                      .o = normals(36, "o"),
                                      .ffn_norm = normals(6, "fn"),
                                      .gate_up = normals(84, "gu"),
                                      .down = normals(42, "down")};
    const scalar::Params<double> p{
        .embed = normals(66, "e"), .layers = {layer, layer}, .final_norm = normals(6, "n"), .head = normals(66, "h")};
    const auto weight = [&](const Values& v, int64_t in) { return memory_.from(DType::f64, {static_cast<int64_t>(v.size()) / in, in}, v); };
    const auto vector = [&](const Values& v) { return memory_.from(DType::f64, {static_cast<int64_t>(v.size())}, v); };
    const AttentionShape s{.batch = batch, .seq = seq, .heads = c.heads, .kv_heads = c.kv_heads, .head_dim = c.head_dim};
    const int64_t n = batch * seq;
    const Tensor x = zeros({n, 6}), normed = zeros({n, 6}), rstd = zeros({n}), qkv = zeros({n, 10}), out = zeros({n, 6});
    const Tensor lse = zeros({batch, 3, seq}), part = zeros({n, 6}), gu = zeros({n, 14}), act = zeros({n, 7}), table = zeros({seq, 2});
    ops_.rope_table(table, {.theta = c.theta});
    ops_.embed(x, ids(tokens), weight(p.embed, 6), 0);
    for (const auto& l : p.layers) {
      ops_.rmsnorm(normed, rstd, x, vector(l.attn_norm), c.eps);
      ops_.matmul(qkv, normed, weight(l.qkv, 6), {.trans_b = true});
      ops_.rope(qkv, table, s, 1);
      ops_.attention(out, lse, qkv, s);
      ops_.matmul(part, out, weight(l.o, 6), {.trans_b = true});
      ops_.add_rmsnorm(x, normed, rstd, x, part, vector(l.ffn_norm), c.eps);
      ops_.matmul(gu, normed, weight(l.gate_up, 6), {.trans_b = true});
      ops_.swiglu(act, gu);
      ops_.matmul(x, act, weight(l.down, 7), {.trans_b = true, .accumulate = true});
    }
    const Tensor logits = zeros({n, 11}), stats = zeros({n, 3}), loss_sum = zeros({1});
    ops_.rmsnorm(normed, rstd, x, vector(p.final_norm), c.eps);
    ops_.matmul(logits, normed, weight(tied ? p.embed : p.head, 6), {.trans_b = true});
    ops_.cross_entropy_partial(stats, logits, ids(labels), 0);
    ops_.cross_entropy_finish(loss_sum, stats, ids(labels));
    expect_close(to_f64(logits), scalar::logits(c, p, tokens, batch, seq), "logits");
    expect_close({*row(loss_sum) / 9}, {scalar::loss(c, p, tokens, labels, batch, seq)}, "loss");
  }
}

}  // namespace
}  // namespace hlat
