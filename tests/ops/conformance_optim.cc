// Rows of adamw: every combination of weight, master, moment and gradient types, nearest and stochastic; weights in FP8.
// f32 results agree to a few units. A stochastically rounded store is one of the two bf16 neighbours of the exact value and
// is the one its noise bits choose, but for the few elements whose exact value lies within f32 error of the threshold.
// The master of a weight in FP8 is updated as a weight of the row's type is, and the weight is exactly its rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ops/conformance_fp8_cases.h"
#include "support/adamw_call.h"

namespace hlat {
namespace {

struct AdamwCase {
  DType moment = DType::f32, grad = DType::f32;
  bool master = false;
  int64_t n = 1;
  double lr = 0;
  int64_t step = 1;
  AdamwScalars scalars;
  double scale = 1;
  bool measured = false;
  std::optional<DType> fp8 = {};  // the type of the weight; its master has the row's
};

struct AdamwTwins {
  Twin weight, master, m, v, grad, scale, step, weight_sq, change, fp8_scale, fp8_seen;
  AdamwTensors at(const View& view) const {
    return {view(weight), view(master),    view(m),      view(v),         view(grad),    view(scale),
            view(step),   view(weight_sq), view(change), view(fp8_scale), view(fp8_seen)};
  }
};

// Element 0 has no gradient and no history: its update is 0 / (0 + eps).
std::vector<double> small(int64_t n, const char* name, double std, bool zero_first) {
  std::vector<double> v = normals(n, name);
  for (double& x : v) x *= std;
  if (zero_first) v[0] = 0;
  return v;
}

// On the backend the tensor that was the weight is the master; the reference has no FP8 and goes on with a plain weight. The scale lets
// some weights saturate and some become 0.
void make_fp8_weight(Lab& lab, AdamwTwins& t, DType type) {
  t.master.test = t.weight.test;
  t.weight.test = lab.memory().zeros(type, t.master.test.shape);
  t.fp8_scale.test = lab.memory().from(
      DType::f32, {kFp8Scale}, {type == DType::f8e4m3 ? 0x1p14 : 0x1p21, 0, 0, 0, type == DType::f8e4m3 ? 0x1p-14 : 0x1p-21, 0, 0, 0});
  t.fp8_seen.test = lab.memory().from(DType::f64, {kFp8Seen}, {0x1p-10, 3, 7});
}

AdamwTwins make_twins(Lab& lab, const AdamwCase& c) {
  std::vector<double> v = small(c.n, "v", 1e-2, c.n > 1);
  for (double& x : v) x *= x;
  const std::vector<double> w = small(c.n, "w", 0.02, false);
  AdamwTwins t;
  t.weight = lab.values({c.n}, w);
  if (c.master) t.master = lab.values(DType::f32, {c.n}, w);
  t.m = lab.values(c.moment, {c.n}, small(c.n, "m", 1e-2, c.n > 1));
  t.v = lab.values(c.moment, {c.n}, v);
  t.grad = lab.values(c.grad, {c.n}, small(c.n, "g", 1e-2, c.n > 1));
  t.scale = lab.values(DType::f32, {1}, {c.scale});
  const AdamwStep step = AdamwStep::of(c.lr, c.step, c.scalars.beta1, c.scalars.beta2);
  t.step = lab.values(DType::f64, {kAdamwStep}, {step.lr, step.correction1, step.correction2_rsqrt, step.number});
  t.weight_sq = lab.output(DType::f64, {1});
  if (c.measured) t.change = lab.output(DType::f64, {kAdamwChange});
  if (c.fp8) make_fp8_weight(lab, t, *c.fp8);
  return t;
}

// Absolute errors in units of 2^-24, from the inputs: moments are two-term sums, the update divides and corrects them.
struct UpdateMagnitudes {
  std::vector<double> m, v, w;
};

UpdateMagnitudes magnitudes(const AdamwTwins& t, const AdamwCase& c) {
  const double b1 = static_cast<double>(c.scalars.beta1), b2 = static_cast<double>(c.scalars.beta2), step = static_cast<double>(c.step);
  UpdateMagnitudes out;
  for (int64_t i = 0; i < c.n; ++i) {
    const double g = row(t.grad.mag)[i] * row(t.scale.mag)[0];
    const double m = b1 * row(t.m.mag)[i] + (1 - b1) * g, v = b2 * row(t.v.mag)[i] + (1 - b2) * g * g;
    const double w = row(c.master ? t.master.mag : t.weight.mag)[i];
    const double update = m / (1 - std::pow(b1, step)) / (std::sqrt(v / (1 - std::pow(b2, step))) + static_cast<double>(c.scalars.eps));
    out.m.push_back(8 * m);
    out.v.push_back(8 * v);
    out.w.push_back(4 * w + 64 * c.lr * update);
  }
  return out;
}

// The bf16 grid below and above a value: 8 significant bits, fixed spacing below the smallest normal number.
double bf16_down(double x) {
  const double ulp = std::ldexp(1.0, std::max(x == 0 ? -126 : std::ilogb(x), -126) - 7);
  return std::floor(x / ulp) * ulp;
}
double bf16_up(double x) { return -bf16_down(-x); }

void expect_stochastic(const char* what, const Twin& t, const std::vector<double>& units, const NoiseKey& key, const ElementMap& map) {
  int64_t chosen = 0;
  for (int64_t i = 0; i < t.test.numel(); ++i) {
    const double exact = row(t.ref)[i], error = units[static_cast<size_t>(i)] * 0x1p-24 + 1e-30, stored = load_f64(t.test, i);
    EXPECT_GE(stored, bf16_down(exact - error)) << what << " element " << i << " of exact value " << exact;
    EXPECT_LE(stored, bf16_up(exact + error)) << what << " element " << i << " of exact value " << exact;
    chosen += t.test.as<bf16>()[i].bits == to_bf16_stochastic(static_cast<float>(exact), noise_at(key, map.global(i))).bits;
  }
  EXPECT_GE(chosen, t.test.numel() - t.test.numel() / 100 - 1) << what << ": not the noise of its key";
}

void expect_stored(Lab& lab, const char* what, const Twin& t, const std::vector<double>& units, const AdamwCase& c, Noise purpose) {
  const AdamwScalars& s = c.scalars;
  const NoiseKey key{s.seed, s.stream, purpose, static_cast<uint32_t>(c.step)};
  const Rounding rounding = purpose == Noise::round_weight ? s.round_weights : s.round_moments;
  if (t.test.dtype == DType::bf16 && rounding == Rounding::stochastic) {
    expect_stochastic(what, t, units, key, s.map);
  } else {
    lab.expect(what, t, {.units = 1, .magnitude = units});
  }
}

// With a master the weight is exactly its rounding.
void expect_rounded_master(const AdamwTwins& t, const AdamwCase& c) {
  const AdamwScalars& s = c.scalars;
  const NoiseKey key{s.seed, s.stream, Noise::round_weight, static_cast<uint32_t>(c.step)};
  for (int64_t i = 0; i < t.weight.test.numel(); ++i) {
    const float master = t.master.test.as<float>()[i];
    const bf16 expected =
        s.round_weights == Rounding::nearest ? to_bf16(master) : to_bf16_stochastic(master, noise_at(key, s.map.global(i)));
    EXPECT_EQ(t.weight.test.as<bf16>()[i].bits, expected.bits) << "weight " << i << " of master " << master;
  }
}

void expect_fp8_master(Lab& lab, const AdamwTwins& t) {
  const Tensor weight = lab.memory().zeros(t.weight.test.dtype, t.weight.test.shape);
  const Tensor seen = lab.memory().from(DType::f64, {kFp8Seen}, {0x1p-10, 3, 7});
  lab.ref().quantize_flat(weight, t.master.test, t.fp8_scale.test, seen);
  expect_bits("weight", t.weight.test, weight);
  expect_bits("fp8_seen", t.fp8_seen.test, seen);
}

// Of what was stored, before and after: sums of squares in f32 over short runs, all else exactly.
void expect_change(Lab& lab, const AdamwTwins& t, const std::vector<double>& before, const Tensor& after) {
  AdamwChange change{.v_min = std::numeric_limits<double>::infinity()};
  const std::vector<double> w = to_f64(after), m = to_f64(t.m.test), v = to_f64(t.v.test);
  for (size_t i = 0; i < w.size(); ++i) {
    change.change_sq += (w[i] - before[i]) * (w[i] - before[i]);
    change.unchanged += w[i] == before[i] ? 1 : 0;
    change.m_max = std::max(change.m_max, std::abs(m[i]));
    change.v_max = std::max(change.v_max, v[i]);
    if (v[i] > 0) change.v_min = std::min(change.v_min, v[i]);
  }
  *t.change.ref.as<AdamwChange>() = change;
  lab.expect("change", t.change, {.units = 64});
}

void adamw(Lab& lab, const AdamwCase& c) {
  const AdamwTwins t = make_twins(lab, c);
  const Twin own = c.master ? t.master : c.fp8 ? Twin{t.master.test, t.weight.ref, t.weight.mag} : t.weight;
  const std::vector<double> before = to_f64(own.test);
  const UpdateMagnitudes units = magnitudes(t, c);
  lab.run([&](Ops& ops, const View& at) { adamw(ops, t.at(at), c.scalars); });
  expect_stored(lab, "m", t.m, units.m, c, Noise::round_moment1);
  expect_stored(lab, "v", t.v, units.v, c, Noise::round_moment2);
  expect_stored(lab, c.master || c.fp8 ? "master" : "weight", own, units.w, c, Noise::round_weight);
  if (c.master) expect_rounded_master(t, c);
  if (c.fp8) expect_fp8_master(lab, t);
  double squares = 0;
  for (const double w : to_f64(own.test)) squares += w * w;
  *row(t.weight_sq.ref) = squares;
  lab.expect("weight_sq", t.weight_sq, {.units = 64});
  if (c.measured) expect_change(lab, t, before, own.test);
}

struct Variant {
  const char* name;
  int64_t n;
  double lr;
  int64_t step;
  AdamwScalars scalars;
  double scale;
};

const std::vector<Variant> kVariants = {
    {"first step, no decay", 1, 1e-3, 1, {.seed = 5, .stream = 6}, 1.0},
    {"decay, clipped, shard", 37, 1e-2, 7, {.eps = 1e-3f, .weight_decay = 0.1f, .seed = 5, .stream = 6, .map = {.first = 13}}, 0.3},
    {"columns of a shard",
     1000,
     1e-2,
     3,
     {.weight_decay = 0.1f, .seed = 5, .stream = 6, .map = {.first = 11, .run = 29, .stride = 101, .offset = 7}},
     1.0},
    {"late", 9001, 3e-4, 100000, {.beta1 = 0.8f, .beta2 = 0.99f, .weight_decay = 0.1f, .seed = 8, .stream = 9, .map = {.first = 4}}, 1e-2},
};

}  // namespace

void add_optim_rows(Table& table) {
  for (const Variant& variant : kVariants) {
    for (int bits = 0; bits < 64; ++bits) {
      AdamwCase c{.moment = (bits & 1) ? DType::bf16 : DType::f32,
                  .grad = (bits & 2) ? DType::bf16 : DType::f32,
                  .master = (bits & 4) != 0,
                  .n = variant.n,
                  .lr = variant.lr,
                  .step = variant.step,
                  .scalars = variant.scalars,
                  .scale = variant.scale,
                  .measured = (bits & 32) != 0};
      c.scalars.round_weights = (bits & 8) ? Rounding::stochastic : Rounding::nearest;
      c.scalars.round_moments = (bits & 16) ? Rounding::stochastic : Rounding::nearest;
      table.push_back(
          {"adamw",
           fmt::format("{}: moments {}, grad {}{}{}{}{}", variant.name, name_of(c.moment), name_of(c.grad), c.master ? ", master" : "",
                       (bits & 8) ? ", stochastic weights" : "", (bits & 16) ? ", stochastic moments" : "", c.measured ? ", measured" : ""),
           [c](Lab& lab) {
             if (!c.master || lab.dtype() == DType::bf16) adamw(lab, c);
           }});
      if (c.master) continue;
      c.fp8 = DType::f8e4m3;
      c.moment = (bits & 16) ? DType::bf16 : DType::f32;
      table.push_back(
          {"adamw_fp8",
           fmt::format("{}: {}, moments {}, grad {}{}{}{}", variant.name, name_of(*c.fp8), name_of(c.moment), name_of(c.grad),
                       (bits & 8) ? ", stochastic weights" : "", (bits & 16) ? ", stochastic moments" : "", c.measured ? ", measured" : ""),
           [c](Lab& lab) { adamw(lab, c); }});
    }
  }
}

}  // namespace hlat
