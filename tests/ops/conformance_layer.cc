// Rows of rmsnorm (with its fused and backward forms) and SwiGLU.
#include <algorithm>
#include <cmath>

#include "ops/conformance.h"

namespace hlat {
namespace {

constexpr double kEps = 1e-5;

// The mean of squares is a sum of positive terms: everything here is relative to the value.
Tolerance norm_tolerance(int64_t width) { return {.units = sum_units(width) + 8}; }

void rmsnorm(Lab& lab, int64_t n, int64_t d, double std) {
  const Twin x = lab.input({n, d}, "x", std), w = lab.input({d}, "w"), y = lab.output({n, d}), rstd = lab.stat({n});
  lab.run([&](Ops& ops, const View& at) { ops.rmsnorm(at(y), at(rstd), at(x), at(w), kEps); });
  lab.expect("rstd", rstd, norm_tolerance(d));
  lab.expect("y", y, norm_tolerance(d));
}

// alias: 0 separate, 1 sum is x, 2 sum is delta. The norm is of the stored, rounded sum.
void add_rmsnorm(Lab& lab, int64_t n, int64_t d, int alias) {
  const Twin x = lab.input({n, d}, "x"), delta = lab.input({n, d}, "delta"), w = lab.input({d}, "w");
  const Twin separate = lab.output({n, d}), y = lab.output({n, d}), rstd = lab.stat({n});
  const Twin& sum = alias == 0 ? separate : alias == 1 ? x : delta;
  lab.run([&](Ops& ops, const View& at) { ops.add_rmsnorm(at(sum), at(y), at(rstd), at(x), at(delta), at(w), kEps); });
  lab.expect("sum", sum, {.units = 1});
  const Twin again = lab.values(lab.dtype(), {n, d}, to_f64(sum.test));
  const Twin again_y = lab.output({n, d}), again_rstd = lab.stat({n});
  lab.run([&](Ops& ops, const View& at) { ops.rmsnorm(at(again_y), at(again_rstd), at(again), at(w), kEps); });
  from_f64(y.ref, to_f64(again_y.ref));
  from_f64(rstd.ref, to_f64(again_rstd.ref));
  lab.expect("rstd", rstd, norm_tolerance(d));
  lab.expect("y", y, norm_tolerance(d));
}

struct NormCase {
  int64_t n, d;
  bool add_dx = false, accumulate_dw = false, alias = false, wide_sum = false;
};

// dx = rstd (dy w - xhat mean(dy w xhat)) and dw = sum dy xhat, with absolute values in place of every term.
std::pair<std::vector<double>, std::vector<double>> norm_magnitudes(const Twin& dy, const Twin& x, const Twin& w, const Twin& rstd) {
  const int64_t d = x.ref.dim(1);
  std::vector<double> dx, dw(static_cast<size_t>(d));
  for (int64_t n = 0; n < x.ref.dim(0); ++n) {
    const double r = row(rstd.mag)[n];
    double mean = 0;
    for (int64_t i = 0; i < d; ++i) mean += row(dy.mag, n)[i] * row(w.mag)[i] * row(x.mag, n)[i] * r / static_cast<double>(d);
    for (int64_t i = 0; i < d; ++i) {
      dx.push_back(r * (row(dy.mag, n)[i] * row(w.mag)[i] + row(x.mag, n)[i] * r * mean));
      dw[static_cast<size_t>(i)] += row(dy.mag, n)[i] * row(x.mag, n)[i] * r;
    }
  }
  return {dx, dw};
}

void add_to(std::vector<double>& sum, const std::vector<double>& v) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += v[i];
}

void rmsnorm_bwd(Lab& lab, const NormCase& c) {
  const Shape shape{c.n, c.d};
  const Twin x = lab.input(shape, "x"), w = lab.input({c.d}, "w"), dy = lab.input(shape, "dy"), y = lab.output(shape),
             exact = lab.stat({c.n});
  lab.run([&](Ops& ops, const View& at) { ops.rmsnorm(at(y), at(exact), at(x), at(w), kEps); });
  const Twin rstd = lab.rounded(DType::f32, exact);
  const DType sum = c.wide_sum ? DType::f32 : lab.dtype();
  const Twin dw = c.accumulate_dw ? lab.values(sum, {c.d}, to_f64(lab.input({c.d}, "dw").ref)) : lab.output(sum, {c.d});
  const Twin dx = c.alias ? dy : c.add_dx ? lab.input(shape, "dx") : lab.output(shape);
  auto [dx_magnitude, dw_magnitude] = norm_magnitudes(dy, x, w, rstd);
  if (c.add_dx) add_to(dx_magnitude, to_f64(dx.mag));
  if (c.accumulate_dw) add_to(dw_magnitude, to_f64(dw.mag));
  lab.run([&](Ops& ops, const View& at) {
    ops.rmsnorm_bwd(at(dx), at(dw), at(dy), at(x), at(w), at(rstd), {.add_dx = c.add_dx, .accumulate_dw = c.accumulate_dw});
  });
  lab.expect("dx", dx, {.units = sum_units(c.d) + 8, .magnitude = dx_magnitude});
  lab.expect("dw", dw, {.units = sum_units(c.n) + 8, .magnitude = dw_magnitude});
}

double largest_gate(const Twin& gu) {
  const auto v = to_f64(gu.mag);
  return *std::max_element(v.begin(), v.end());
}

void swiglu(Lab& lab, int64_t n, int64_t f, double std) {
  const Twin gu = lab.input({n, 2 * f}, "gu", std), y = lab.output({n, f});
  lab.run([&](Ops& ops, const View& at) { ops.swiglu(at(y), at(gu)); });
  lab.expect("y", y, {.units = 12 + largest_gate(gu)});
}

// The derivative of the gate cancels near g = -1.28; its magnitude has a plus there.
void swiglu_bwd(Lab& lab, int64_t n, int64_t f, double std, bool alias) {
  const Twin gu = lab.input({n, 2 * f}, "gu", std), dy = lab.input({n, f}, "dy"), dgu = alias ? gu : lab.output({n, 2 * f});
  std::vector<double> magnitude(static_cast<size_t>(gu.ref.numel()));
  for (int64_t i = 0; i < n * f; ++i) {
    const int64_t at = i / f * 2 * f + i % f;
    const double g = load_f64(gu.ref, at), up = load_f64(gu.mag, at + f), d = load_f64(dy.mag, i), s = 1 / (1 + std::exp(-g));
    magnitude[static_cast<size_t>(at)] = d * up * s * (1 + std::abs(g) * (1 - s));
    magnitude[static_cast<size_t>(at + f)] = d * std::abs(g) * s;
  }
  const double units = 16 + largest_gate(gu);
  lab.run([&](Ops& ops, const View& at) { ops.swiglu_bwd(at(dgu), at(dy), at(gu)); });
  lab.expect("dgu", dgu, {.units = units, .magnitude = magnitude});
}

struct RowsSize {
  int64_t n, d;
};

}  // namespace

void add_layer_rows(Table& table) {
  for (const RowsSize s : {RowsSize{1, 1}, RowsSize{1, 16}, RowsSize{3, 17}, RowsSize{5, 768}, RowsSize{70, 33}, RowsSize{2, 4097}}) {
    const std::string shape = fmt::format("n{} d{}", s.n, s.d);
    for (const double std : {1.0, 1e-3, 100.0})
      table.push_back({"rmsnorm", fmt::format("{} std {}", shape, std), [s, std](Lab& lab) { rmsnorm(lab, s.n, s.d, std); }});
    for (int alias = 0; alias < 3; ++alias)
      table.push_back(
          {"add_rmsnorm", fmt::format("{} alias{}", shape, alias), [s, alias](Lab& lab) { add_rmsnorm(lab, s.n, s.d, alias); }});
    for (int bits = 0; bits < 16; ++bits) {
      const NormCase c{s.n, s.d, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
      if (c.add_dx && c.alias) continue;  // not allowed
      table.push_back({"rmsnorm_bwd",
                       fmt::format("{}{}{}{}{}", shape, c.add_dx ? " add" : "", c.accumulate_dw ? " acc" : "", c.alias ? " alias" : "",
                                   c.wide_sum ? " f32sum" : ""),
                       [c](Lab& lab) { rmsnorm_bwd(lab, c); }});
    }
  }
  for (const RowsSize s : {RowsSize{1, 1}, RowsSize{3, 17}, RowsSize{2, 64}, RowsSize{70, 33}, RowsSize{40, 1000}}) {
    for (const double std : {1.0, 40.0}) {  // 40: the exponential overflows f32
      const std::string shape = fmt::format("n{} f{} std {}", s.n, s.d, std);
      table.push_back({"swiglu", shape, [s, std](Lab& lab) { swiglu(lab, s.n, s.d, std); }});
      for (const bool alias : {false, true})
        table.push_back(
            {"swiglu_bwd", shape + (alias ? " alias" : ""), [s, std, alias](Lab& lab) { swiglu_bwd(lab, s.n, s.d, std, alias); }});
    }
  }
}

}  // namespace hlat
