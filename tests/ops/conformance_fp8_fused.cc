// Rows of the ops that store their result in FP8: what they store and count is what quantize makes of the plain op's result, bit by bit,
// and everything else that they write has the plain op's bits.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/conformance_fp8_cases.h"

namespace hlat {
namespace {

constexpr double kFusedEps = 1e-5;

struct FusedCase {
  int64_t n, d;
  StoreCase store;
  bool wide = false;  // the result in bf16 is asked for as well
  bool not_finite = false;
};

// What an op wrote, beside what the plain op did.
struct Written {
  Twin fused, plain;
};

// A random matrix of bf16 with an infinity where the case has one.
Tensor data(Lab& lab, const FusedCase& c, const Shape& shape, const char* name) {
  const Tensor t = lab.memory().random(DType::bf16, shape, name);
  if (c.not_finite) store_f64(t, t.numel() / 2, INFINITY);
  return t;
}

Written output_pair(Lab& lab, DType type, const Shape& shape) { return {lab.output(type, shape), lab.output(type, shape)}; }

// plain(ops, y) and fused(ops, out, y) have the result y.
template <class Plain, class Fused>
void fused(Lab& lab, const FusedCase& c, const Shape& shape, const Plain& plain, const Fused& both, const std::vector<Written>& others) {
  const StoreTwins store = make_store(lab, c.store, shape[0], shape[1]);
  const Written y = output_pair(lab, DType::bf16, shape);
  lab.run_alone([&](Ops& ops, const View&) { plain(ops, y.plain.test); });
  lab.run_alone([&](Ops& ops, const View& at) { both(ops, store.at(at), c.wide ? y.fused.test : Tensor{}); });
  lab.ref().quantize(store.at(View{&Twin::ref}), y.plain.test);
  expect_store(store, !c.not_finite);
  if (c.wide) expect_bits("result", y.fused.test, y.plain.test);
  for (const Written& w : others) expect_bits("other result", w.fused.test, w.plain.test);
}

void norm(Lab& lab, const FusedCase& c) {
  const Shape shape{c.n, c.d};
  const Tensor x = data(lab, c, shape, "x"), w = lab.memory().random(DType::bf16, {c.d}, "w");
  const Written rstd = output_pair(lab, DType::f32, {c.n});
  fused(
      lab, c, shape, [&](Ops& ops, Tensor y) { ops.rmsnorm(y, rstd.plain.test, x, w, kFusedEps); },
      [&](Ops& ops, const Fp8Store& out, Tensor y) { ops.rmsnorm_fp8(out, y, rstd.fused.test, x, w, kFusedEps); }, {rstd});
}

void add_norm(Lab& lab, const FusedCase& c) {
  const Shape shape{c.n, c.d};
  const Tensor x = data(lab, c, shape, "x"), delta = lab.memory().random(DType::bf16, shape, "delta"),
               w = lab.memory().random(DType::bf16, {c.d}, "w");
  const Written rstd = output_pair(lab, DType::f32, {c.n}), sum = output_pair(lab, DType::bf16, shape);
  fused(
      lab, c, shape, [&](Ops& ops, Tensor y) { ops.add_rmsnorm(sum.plain.test, y, rstd.plain.test, x, delta, w, kFusedEps); },
      [&](Ops& ops, const Fp8Store& out, Tensor y) {
        ops.add_rmsnorm_fp8(out, sum.fused.test, y, rstd.fused.test, x, delta, w, kFusedEps);
      },
      {rstd, sum});
}

void glu(Lab& lab, const FusedCase& c) {
  const Tensor gu = data(lab, c, {c.n, 2 * c.d}, "gu");
  fused(
      lab, c, {c.n, c.d}, [&](Ops& ops, Tensor y) { ops.swiglu(y, gu); },
      [&](Ops& ops, const Fp8Store& out, Tensor y) { ops.swiglu_fp8(out, y, gu); }, {});
}

void glu_bwd(Lab& lab, const FusedCase& c) {
  const Tensor gu = lab.memory().random(DType::bf16, {c.n, 2 * c.d}, "gu"), dy = data(lab, c, {c.n, c.d}, "dy");
  fused(
      lab, c, {c.n, 2 * c.d}, [&](Ops& ops, Tensor dgu) { ops.swiglu_bwd(dgu, dy, gu); },
      [&](Ops& ops, const Fp8Store& out, Tensor dgu) { ops.swiglu_bwd_fp8(out, dgu, dy, gu); }, {});
}

void add_fused_row(Table& table, const char* op, const FusedCase& c, const std::function<void(Lab&)>& body) {
  table.push_back({op, fmt::format("{}x{} {}{}{}", c.n, c.d, c.store.name(), c.wide ? " wide" : "", c.not_finite ? " not finite" : ""),
                   [body](Lab& lab) {
                     if (lab.dtype() == DType::bf16) body(lab);
                   }});
}

}  // namespace

// Scales under which some values saturate, or some are lost.
void add_fp8_fused_rows(Table& table) {
  std::vector<MatrixSize> sizes = {{1, 1}, {1, 16}, {15, 17}, {33, 100}, {257, 33}, {100, 257}, {64, 768}, {130, 1024}};
  sizes.insert(sizes.end(), kPartsOfTiles.begin(), kPartsOfTiles.end());
  int turn = 0;
  for (const MatrixSize s : sizes)
    for (const StoreCase& store : store_cases())
      for (int bits = 0; bits < 4; ++bits) {
        FusedCase c{.n = s.n, .d = s.columns, .store = store, .wide = (bits & 1) != 0, .not_finite = (bits & 2) != 0};
        c.store.scale = ++turn % 2 == 0 ? 0x1p-8 : store.type == DType::f8e4m3 ? 0x1p8 : 0x1p15;
        add_fused_row(table, "rmsnorm_fp8", c, [c](Lab& lab) { norm(lab, c); });
        add_fused_row(table, "add_rmsnorm_fp8", c, [c](Lab& lab) { add_norm(lab, c); });
        add_fused_row(table, "swiglu_fp8", c, [c](Lab& lab) { glu(lab, c); });
        add_fused_row(table, "swiglu_bwd_fp8", c, [c](Lab& lab) { glu_bwd(lab, c); });
      }
}

}  // namespace hlat
