// Rows of FP8: quantize, quantize_flat, transpose, dequantize, matmul_fp8, fp8_scales. What is stored, counted and scaled is compared bit
// by bit; products have a tolerance.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/conformance_fp8_cases.h"

namespace hlat {
namespace {

// Activations are bf16: with f32 there is nothing to do.
void add_row(Table& table, const char* op, std::string shape, const std::function<void(Lab&)>& body) {
  table.push_back({op, std::move(shape), [body](Lab& lab) {
                     if (lab.dtype() == DType::bf16) body(lab);
                   }});
}

std::vector<MatrixSize> matrix_sizes() {
  constexpr std::array<int64_t, 6> odd = {1, 15, 17, 33, 100, 257};
  std::vector<MatrixSize> sizes(kPartsOfTiles.begin(), kPartsOfTiles.end());
  for (const int64_t n : odd)
    for (const int64_t columns : odd) sizes.push_back({n, columns});
  return sizes;
}

void quantize(Lab& lab, const StoreCase& c, const Twin& x) {
  const StoreTwins store = make_store(lab, c, x.test.dim(0), x.test.dim(1));
  lab.run([&](Ops& ops, const View& at) { ops.quantize(store.at(at), at(x)); });
  expect_store(store);
}

// All 65,536 patterns of bf16, or all that are finite.
Twin every_bf16(Lab& lab, bool not_finite) {
  const Twin x = same_type(lab, DType::bf16, {256, 256}, std::vector<double>(65536));
  for (const Tensor& t : {x.test, x.ref})
    for (uint32_t i = 0; i < 65536; ++i) t.as<bf16>()[i].bits = static_cast<uint16_t>(not_finite || (i & 0x7f80u) != 0x7f80u ? i : 0);
  return x;
}

void add_quantize_rows(Table& table) {
  constexpr std::array scales = {1.0, 0x1p-7, 0x1p9, 0x1p60, 0x1p-60};
  size_t turn = 0;
  for (const MatrixSize s : matrix_sizes())
    for (StoreCase c : store_cases())
      for (const bool not_finite : {false, true}) {
        c.scale = scales[turn++ % scales.size()];
        add_row(table, "quantize", fmt::format("{}x{} {}{}", s.n, s.columns, c.name(), not_finite ? " not finite" : ""), [=](Lab& lab) {
          quantize(lab, c, same_type(lab, DType::bf16, {s.n, s.columns}, all_kinds(s.n * s.columns, c.scale, not_finite, "x")));
        });
      }
  for (const DType type : {DType::f8e4m3, DType::f8e5m2})
    for (const double scale : scales)
      for (const bool not_finite : {false, true})
        add_row(table, "quantize", fmt::format("every bf16 {} scale {}{}", name_of(type), scale, not_finite ? " not finite" : ""),
                [=](Lab& lab) { quantize(lab, {.type = type, .columns = true, .scale = scale}, every_bf16(lab, not_finite)); });
}

void quantize_flat(Lab& lab, DType source, const StoreCase& c, const Shape& shape, bool not_finite) {
  const Twin src = same_type(lab, source, shape, all_kinds(shape.numel(), c.scale, not_finite, "src"));
  const StoreTwins store = make_store(lab, c, 1, shape.numel());
  const auto dst = [&](const View& at) { return at(store.rows).viewed(shape); };
  lab.run([&](Ops& ops, const View& at) { ops.quantize_flat(dst(at), at(src), at(store.scale), at(store.seen)); });
  expect_store(store);
}

void add_flat_rows(Table& table) {
  for (const Shape& shape : {Shape{1}, Shape{17}, Shape{5, 33}, Shape{9001}, Shape{3, 257, 129}})
    for (const StoreCase& kind : store_cases()) {
      if (kind.columns) continue;
      for (const DType source : {DType::f32, DType::bf16})
        for (const double scale : {1.0, 0x1p11, 0x1p-60})
          for (const bool not_finite : {false, true}) {
            StoreCase c = kind;
            c.scale = scale;
            add_row(table, "quantize_flat",
                    fmt::format("{} {} {}{}", shape.str(), name_of(source), c.name(), not_finite ? " not finite" : ""),
                    [=](Lab& lab) { quantize_flat(lab, source, c, shape, not_finite); });
          }
    }
}

// Any codes, also those that no store makes.
Twin any_codes(Lab& lab, DType type, const Shape& shape) {
  const Tensor t = lab.memory().zeros(type, shape);
  for (int64_t i = 0; i < t.numel(); ++i) t.as<uint8_t>()[i] = static_cast<uint8_t>(i * 37 + i / 256);
  return {t, t, t};
}

void transpose(Lab& lab, DType type, int64_t n, int64_t columns) {
  const Twin x = any_codes(lab, type, {n, columns});
  const StoreTwins y = make_store(lab, {.type = type, .rows = false, .columns = true, .seen = false}, n, columns);
  lab.run([&](Ops& ops, const View& at) { ops.transpose(at(y.columns), at(x)); });
  expect_store(y);
}

void dequantize(Lab& lab, DType type, int64_t n, int64_t columns, double scale) {
  const Twin x = any_codes(lab, type, {n, columns}), y = same_type(lab, DType::bf16, {n, columns}, normals(n * columns, "y"));
  const Twin scales = fp8_scale(lab, scale);
  lab.run([&](Ops& ops, const View& at) { ops.dequantize(at(y), at(x), at(scales)); });
  expect_bits("y", y.test, y.ref);
}

void add_back_rows(Table& table) {
  for (const DType type : {DType::f8e4m3, DType::f8e5m2}) {
    std::vector<MatrixSize> sizes = matrix_sizes();
    sizes.insert(sizes.end(), {{48, 80}, {144, 144}, {16, 1040}});  // the same, of pieces of 16 columns
    for (const MatrixSize s : sizes)
      add_row(table, "transpose", fmt::format("{}x{} {}", s.n, s.columns, name_of(type)),
              [=](Lab& lab) { transpose(lab, type, s.n, s.columns); });
    add_row(table, "transpose", fmt::format("512x768 {}", name_of(type)), [=](Lab& lab) { transpose(lab, type, 512, 768); });
    for (const double scale : {1.0, 0x1p-7, 0x1p60, 0x1p-60})
      for (const auto& [n, columns] : {std::pair{1, 1}, std::pair{17, 33}, std::pair{257, 100}})
        add_row(table, "dequantize", fmt::format("{}x{} {} scale {}", n, columns, name_of(type), scale),
                [=](Lab& lab) { dequantize(lab, type, n, columns, scale); });
  }
}

struct ProductCase {
  int64_t m, n, k;
  DType a = DType::f8e4m3, b = DType::f8e4m3, c = DType::f32;
  bool accumulate = false, residual = false, fast_sums = false;
};

// Sums of one type for the backend; the reference rounds once to f32.
Twin sums(Lab& lab, DType type, const Shape& shape, const char* name) {
  const Tensor test = lab.memory().random(type, shape, name);
  std::vector<double> values = to_f64(test);
  const Tensor ref = lab.memory().from(DType::f32, shape, values);
  for (double& v : values) v = std::abs(v);
  return {test, ref, lab.memory().from(DType::f32, shape, values)};
}

Twin operand(Lab& lab, DType type, const Shape& shape, const char* name) {
  const Tensor t = lab.memory().random(type, shape, name, 4), magnitude = lab.memory().zeros(type, shape);
  for (int64_t i = 0; i < t.numel(); ++i) magnitude.as<uint8_t>()[i] = t.as<uint8_t>()[i] & 0x7f;
  return {t, t, magnitude};
}

// Besides what a sum of f32 errs: one rounding of the reference, and of a residual that is added to a rounded product. Tensor cores of
// Hopper keep 13 bits below the largest product that they add at once, 2^-12 of the magnitude. With fast_sums they cut the whole sum to as
// many bits after every 32 products, always towards zero; the sum so far is about the root of its terms' magnitude.
double product_units(const ProductCase& c, const std::string& backend) {
  const bool cuda = backend == "cuda", rounded = c.c == DType::bf16 && (c.residual || (cuda && c.accumulate));
  const double cuts = c.fast_sums ? std::max(1.0, std::sqrt(static_cast<double>(c.k) / 32) / 2) : 1;
  return sum_units(c.k + 1) + 2 + (rounded ? 0x1p16 : 0) + (cuda ? cuts * 0x1p12 : 0);
}

void product(Lab& lab, const ProductCase& c) {
  const Twin a = operand(lab, c.a, {c.m, c.k}, "a"), b = operand(lab, c.b, {c.n, c.k}, "b");
  const Twin scale_a = fp8_scale(lab, 0x1p5), scale_b = fp8_scale(lab, 0x1p-3);
  const Twin out = sums(lab, c.c, {c.m, c.n}, "c"), residual = c.residual ? sums(lab, c.c, {c.m, c.n}, "residual") : Twin{};
  if (!c.accumulate) from_f64(out.test, std::vector<double>(static_cast<size_t>(c.m * c.n), std::nan("")));
  lab.run_linear([&](Ops& ops, const View& at) {
    ops.matmul_fp8(at(out), {at(a), at(scale_a)}, {at(b), at(scale_b)}, at(residual),
                   {.accumulate = c.accumulate, .fast_sums = c.fast_sums});
  });
  lab.expect_linear("c", out, product_units(c, lab.backend()));
}

void add_product_rows(Table& table) {
  struct Size {
    int64_t m, n, k;
  };
  constexpr std::array types = {std::pair{DType::f8e4m3, DType::f8e4m3}, std::pair{DType::f8e5m2, DType::f8e4m3},
                                std::pair{DType::f8e4m3, DType::f8e5m2}};
  for (const Size s : {Size{16, 16, 16}, Size{32, 48, 64}, Size{80, 112, 1008}, Size{16, 272, 4096}})
    for (const auto& [a, b] : types)
      for (const DType sum : {DType::f32, DType::bf16})
        for (const int how : {0, 1, 2})  // overwrites, accumulates, adds a residual
          for (const bool fast : {false, true}) {
            const ProductCase c{s.m, s.n, s.k, a, b, sum, how == 1, how == 2, fast};
            add_row(table, "matmul_fp8",
                    fmt::format("{}x{}x{} {} {} to {}{}{}{}", s.m, s.n, s.k, name_of(a), name_of(b), name_of(sum),
                                c.accumulate ? " acc" : "", c.residual ? " residual" : "", fast ? " fast" : ""),
                    [c](Lab& lab) { product(lab, c); });
          }
}

struct ScalesCase {
  int64_t ranks, units;
  bool clips = false, resets = false;
};

// Forty steps: the history goes round more than twice. Values of every size, zeros, and now and then what is not finite, or a factor of the
// update that is NaN. What is reset lies in what was seen where there is one rank, as in a run.
void scales(Lab& lab, const ScalesCase& c) {
  const int64_t ranks = c.ranks, units = c.units, kept = units / 2;
  const auto filled = [&](const Shape& shape, double value) {
    return same_type(lab, DType::f32, shape, std::vector<double>(static_cast<size_t>(shape.numel()), value));
  };
  const Twin scale = filled({units, kFp8Scale}, 1), history = filled({units, kFp8History}, 0);
  std::vector<double> limits = all_kinds(units, 1, false, "limit");
  for (double& l : limits) l = std::isnormal(static_cast<float>(l)) ? std::abs(l) : 448;
  const Twin limit = same_type(lab, DType::f32, {units}, limits);
  for (int64_t number = 1; number <= 40; ++number) {
    std::vector<double> seen = all_kinds(ranks * units * kFp8Seen, 0x1p4, number % 7 == 0, "seen " + std::to_string(number));
    for (double& s : seen) s = std::abs(static_cast<float>(s));
    const Twin met = same_type(lab, DType::f64, {ranks * units, kFp8Seen}, seen);
    const Twin clip = c.clips ? same_type(lab, DType::f32, {1}, {number % 5 == 0 ? std::nan("") : 0.5}) : Twin{};
    const std::vector<double> before(static_cast<size_t>((units - kept) * kFp8Seen), 7);
    const Twin reset = !c.resets    ? Twin{}
                       : ranks == 1 ? met.rows(kept, units)
                                    : same_type(lab, DType::f64, {units - kept, kFp8Seen}, before);
    const AdamwStep at = AdamwStep::of(1e-3, number, 0.9f, 0.95f);
    const Twin step = same_type(lab, DType::f64, {kAdamwStep}, {at.lr, at.correction1, at.correction2_rsqrt, at.number});
    lab.run([&](Ops& ops, const View& v) {
      ops.fp8_scales(v(scale), v(history), v(met).viewed({ranks, units, kFp8Seen}), v(limit), v(step), v(clip), v(reset));
    });
    expect_bits("history", history.test, history.ref);
    expect_bits("scale", scale.test, scale.ref);
    expect_bits("seen", met.test, met.ref);
    if (c.resets) expect_bits("reset", reset.test, reset.ref);
  }
}

}  // namespace

void add_fp8_rows(Table& table) {
  add_quantize_rows(table);
  add_flat_rows(table);
  add_back_rows(table);
  add_product_rows(table);
  for (const int64_t ranks : {1, 3})
    for (const int64_t units : {1, 5, 300})
      for (int bits = 0; bits < 4; ++bits) {
        const ScalesCase c{.ranks = ranks, .units = units, .clips = (bits & 1) != 0, .resets = (bits & 2) != 0};
        add_row(table, "fp8_scales",
                fmt::format("{} ranks, {} tensors{}{}", ranks, units, c.clips ? " clip" : "", c.resets ? " reset" : ""),
                [c](Lab& lab) { scales(lab, c); });
      }
}

}  // namespace hlat
