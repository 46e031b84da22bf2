// Rows of the plain ops that round to bf16 after every step, and of the rounding of strided rows. All are of bf16; rows of f32 are empty.
// Tolerances count the roundings to bf16 on the way, 2^-8 each at most (bf16_units): two for a step and its input, and for an exponential
// as many as its argument is large, since the argument is rounded itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/conformance.h"

namespace hlat {
namespace {

constexpr double kNarrowEps = 1e-5;

Tolerance steps(double bf16_units, std::vector<double> magnitude = {}) {
  return {.units = 16, .magnitude = std::move(magnitude), .bf16_units = bf16_units};
}

void narrow_softmax(Lab& lab, int64_t seq, double std, bool alias) {
  const double scale = 0.37, reach = 8 * std * scale;  // scores of a row differ by about this
  const Twin scores = lab.input({seq, seq}, "scores", std), dp = lab.input({seq, seq}, "dp");
  const Twin separate = lab.output({seq, seq}), lse = lab.stat({seq}), dscores = lab.output({seq, seq});
  const Twin& p = alias ? scores : separate;
  lab.run([&](Ops& ops, const View& at) { ops.narrow_softmax(at(p), at(lse), at(scores), scale); });
  lab.expect("p", p, steps(6 + 3 * reach));
  std::vector<double> large(static_cast<size_t>(seq), 1 + reach);
  lab.expect("lse", lse, steps(6, large));
  const Twin given = lab.rounded(lab.dtype(), p);
  lab.run([&](Ops& ops, const View& at) { ops.narrow_softmax_bwd(at(dscores), at(dp), at(given), scale); });
  std::vector<double> magnitude;
  for (int64_t t = 0; t < seq; ++t) {
    double sum = 0;
    for (int64_t i = 0; i <= t; ++i) sum += row(given.mag, t)[i] * row(dp.mag, t)[i];
    for (int64_t i = 0; i < seq; ++i) magnitude.push_back(i <= t ? scale * row(given.mag, t)[i] * (row(dp.mag, t)[i] + sum) : 0);
  }
  lab.expect("dscores", dscores, steps(6, magnitude));
}

void narrow_rmsnorm(Lab& lab, int64_t n, int64_t d, bool alias, bool accumulate) {
  const Twin x = lab.input({n, d}, "x"), w = lab.input({d}, "w"), dy = lab.input({n, d}, "dy"), y = lab.output({n, d}),
             rstd = lab.stat({n});
  lab.run([&](Ops& ops, const View& at) { ops.narrow_rmsnorm(at(y), at(rstd), at(x), at(w), kNarrowEps); });
  lab.expect("rstd", rstd, steps(5));
  lab.expect("y", y, steps(7));
  const Twin given = lab.rounded(DType::bf16, rstd), r = lab.rounded(DType::f32, given);
  std::vector<double> dx_size, dw_size(static_cast<size_t>(d));
  for (int64_t k = 0; k < n; ++k) {
    double mean = 0;
    const double s = row(r.mag)[k];
    for (int64_t i = 0; i < d; ++i) mean += row(dy.mag, k)[i] * row(w.mag)[i] * row(x.mag, k)[i] * s / static_cast<double>(d);
    for (int64_t i = 0; i < d; ++i) {
      dx_size.push_back(s * (row(dy.mag, k)[i] * row(w.mag)[i] + row(x.mag, k)[i] * s * mean));
      dw_size[static_cast<size_t>(i)] += row(dy.mag, k)[i] * row(x.mag, k)[i] * s;
    }
  }
  const Twin before = lab.input({d}, "dw"), dw = accumulate ? lab.values(DType::f32, {d}, to_f64(before.ref)) : lab.output(DType::f32, {d});
  const Twin dx = alias ? dy : accumulate ? lab.input({n, d}, "dx") : lab.output({n, d});
  const bool adds = accumulate && !alias;
  if (adds) {
    const std::vector<double> was = to_f64(dx.mag);
    for (size_t i = 0; i < was.size(); ++i) dx_size[i] += was[i];
  }
  if (accumulate)
    for (size_t i = 0; i < dw_size.size(); ++i) dw_size[i] += row(before.mag)[i];
  lab.run([&](Ops& ops, const View& at) {
    ops.narrow_rmsnorm_bwd(at(dx), at(dw), at(dy), at(x), at(w), at(r), {.add_dx = adds, .accumulate_dw = accumulate});
  });
  lab.expect("dx", dx, steps(8, dx_size));
  lab.expect("dw", dw, steps(2, dw_size));
}

void narrow_cross_entropy(Lab& lab, int64_t n, int64_t vocab, double std, int64_t first) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < n; ++i) labels.push_back(i % 4 == 3 ? -1 : static_cast<int32_t>((i * 7 + first) % (first + vocab + 2)));
  const double scale = 1.0 / 8, reach = 8 * std;
  const Twin logits = lab.input({n, vocab}, "logits", std), targets = lab.ids(labels), stats = lab.stat({n, 3});
  lab.run([&](Ops& ops, const View& at) { ops.narrow_cross_entropy_partial(at(stats), at(logits), at(targets), first); });
  lab.expect("stats", stats, steps(3 + reach));
  const Twin given = lab.rounded(DType::bf16, stats), s = lab.rounded(DType::f32, given), loss = lab.values(DType::f64, {1}, {0.25});
  lab.run([&](Ops& ops, const View& at) { ops.narrow_cross_entropy_finish(at(loss), at(s), at(targets)); });
  double magnitude = 0.25;
  for (int64_t i = 0; i < n; ++i)
    magnitude += std::abs(std::log(row(s.ref, i)[1])) + std::abs(row(s.ref, i)[0]) + std::abs(row(s.ref, i)[2]);
  lab.expect("loss", loss, steps(3, {magnitude}));
  const Twin dlogits = lab.output({n, vocab});
  lab.run([&](Ops& ops, const View& at) { ops.narrow_cross_entropy_bwd(at(dlogits), at(logits), at(s), at(targets), first, scale); });
  std::vector<double> size;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t v = 0; v < vocab; ++v) {
      const double p = std::exp(row(logits.ref, i)[v] - row(s.ref, i)[0]) / row(s.ref, i)[1];
      const int32_t target = labels[static_cast<size_t>(i)];
      size.push_back(target < 0 ? 0 : scale * (p * (1 + reach) + (target == first + v ? 1 : 0)));
    }
  lab.expect("dlogits", dlogits, steps(5, size));
}

// Exactly the bits of the noise of the global element, in columns of a wider matrix.
void round_rows(Lab& lab, int64_t n, int64_t begin, int64_t end, int64_t width) {
  const NoiseKey key{.seed = 3, .stream = 4, .purpose = Noise::cast, .step = 5};
  const int64_t first_row = 7, count = end - begin;
  const ElementMap map{.first = first_row * width + begin, .run = count, .stride = width};
  const Twin src = lab.values(DType::f32, {n, width}, to_f64(lab.input({n, width}, "src").ref)),
             dst = lab.values({n, width}, to_f64(src.ref));
  const Tensor from = columns(src.test, begin, end), to = columns(dst.test, begin, end);
  lab.ops().round_rows(to, from, key, map);
  lab.sync();
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < width; ++c) {
      const float x = src.test.as<float>()[r * width + c];
      const bool inside = begin <= c && c < end;
      const bf16 expected = inside ? to_bf16_stochastic(x, noise_at(key, (first_row + r) * width + c)) : to_bf16(x);
      ASSERT_EQ(dst.test.as<bf16>()[r * width + c].bits, expected.bits) << r << ", " << c;
    }
}

}  // namespace

void add_narrow_rows(Table& table) {
  const auto add = [&](const char* op, std::string shape, std::function<void(Lab&)> body) {
    table.push_back({op, std::move(shape), [body = std::move(body)](Lab& lab) {
                       if (lab.dtype() == DType::bf16) body(lab);
                     }});
  };
  for (const auto& [seq, std, alias] : {std::tuple{1, 1.0, false}, {2, 1.0, true}, {37, 1.0, false}, {64, 3.0, true}, {300, 0.5, true}})
    add("narrow_softmax", fmt::format("T {}, std {}{}", seq, std, alias ? ", in place" : ""),
        [=, seq = seq, std = std, alias = alias](Lab& lab) { narrow_softmax(lab, seq, std, alias); });
  for (const auto& [n, d, alias, adds] :
       {std::tuple{1, 2, false, false}, {5, 33, true, false}, {67, 300, false, true}, {130, 1030, true, true}, {0, 8, false, false}})
    add("narrow_rmsnorm", fmt::format("{} x {}{}{}", n, d, alias ? ", dx is dy" : "", adds ? ", adds" : ""),
        [n = n, d = d, alias = alias, adds = adds](Lab& lab) { narrow_rmsnorm(lab, n, d, alias, adds); });
  for (const auto& [n, vocab, std, first] : {std::tuple{1, 1, 1.0, 0}, {9, 37, 1.0, 0}, {5, 1000, 0.5, 700}})
    add("narrow_cross_entropy", fmt::format("{} x {} from {}, std {}", n, vocab, first, std),
        [n = n, vocab = vocab, std = std, first = first](Lab& lab) { narrow_cross_entropy(lab, n, vocab, std, first); });
  for (const auto& [n, begin, end, width] : {std::tuple{1, 0, 1, 1}, {5, 0, 64, 64}, {7, 3, 29, 31}, {33, 8, 24, 40}, {4, 5, 5, 9}})
    add("round_rows", fmt::format("{} rows, columns {} to {} of {}", n, begin, end, width),
        [n = n, begin = begin, end = end, width = width](Lab& lab) { round_rows(lab, n, begin, end, width); });
}

}  // namespace hlat
