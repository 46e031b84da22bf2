// How near each op that stores FP8 comes to the machine's copy rate: fp8_bandwidth [TOKENS WIDTH FFN], else the shapes of a 7B, a 1B and a
// 134M model. The copy is measured in the same run.
#include <algorithm>
#include <cstdlib>
#include <span>
#include <vector>

#include "support/bandwidth_table.h"

namespace hlat {
namespace {

constexpr DType f32 = DType::f32, b16 = DType::bf16, f64 = DType::f64, e4m3 = DType::f8e4m3, e5m2 = DType::f8e5m2;

struct Fp8Sizes {
  int64_t n, d, f;
};

// Where stores go; their scale is 16, which few normal numbers, and few products of two, go beyond.
struct Place {
  Tensor scale, seen;

  explicit Place(Table& t) {
    const float scales[kFp8Scale] = {16.0f, 0, 0, 0, 1.0f / 16.0f};
    const Fp8Seen none;
    scale = t.upload(f32, {kFp8Scale}, scales);
    seen = t.upload(f64, {kFp8Seen}, &none);
  }
  Fp8Store both(Table& t, DType type, int64_t n, int64_t c) const { return {t.empty(type, {n, c}), t.empty(type, {c, n}), scale, seen}; }
};

void quantize_rows(Table& t, const Place& place, int64_t n, int64_t c) {
  const Scope scope(t.data());
  const Tensor x = t.random(b16, {n, c});
  const Fp8Store both = place.both(t, e4m3, n, c);
  Fp8Store rows = both, columns = both, unseen = both;
  rows.columns = columns.rows = unseen.seen = {};
  const auto name = [&](const char* what) { return fmt::format("quantize {} {}", c, what); };
  t.row(name("e4m3").c_str(), [&](Ops& o) { o.quantize(both, x); });
  t.row(name("e4m3 unseen").c_str(), [&](Ops& o) { o.quantize(unseen, x); });
  t.row(name("e4m3 rows").c_str(), [&](Ops& o) { o.quantize(rows, x); });
  t.row(name("e4m3 columns").c_str(), [&](Ops& o) { o.quantize(columns, x); });
  const Fp8Store gradient = place.both(t, e5m2, n, c);
  t.row(name("e5m2").c_str(), [&](Ops& o) { o.quantize(gradient, x); });
}

void norms(Table& t, const Place& place, int64_t n, int64_t d) {
  const Scope scope(t.data());
  const Tensor x = t.random(b16, {n, d}), y = t.random(b16, {n, d}), z = t.empty(b16, {n, d}), sum = t.empty(b16, {n, d}),
               w = t.random(b16, {d}), rstd = t.empty(f32, {n}), dw = t.random(f32, {d});
  const Fp8Store out = place.both(t, e4m3, n, d);
  t.row("rmsnorm", [&](Ops& o) { o.rmsnorm(z, rstd, x, w, 1e-5); });
  t.row("rmsnorm_fp8", [&](Ops& o) { o.rmsnorm_fp8(out, {}, rstd, x, w, 1e-5); });
  t.row("rmsnorm_fp8 and bf16", [&](Ops& o) { o.rmsnorm_fp8(out, z, rstd, x, w, 1e-5); });
  t.row("add_rmsnorm", [&](Ops& o) { o.add_rmsnorm(sum, z, rstd, x, y, w, 1e-5); });
  t.row("add_rmsnorm_fp8", [&](Ops& o) { o.add_rmsnorm_fp8(out, sum, {}, rstd, x, y, w, 1e-5); });
  t.row("rmsnorm_bwd add, accumulate", [&](Ops& o) { o.rmsnorm_bwd(z, dw, y, x, w, rstd, {.add_dx = true, .accumulate_dw = true}); });
}

void swiglus(Table& t, const Place& place, int64_t n, int64_t f) {
  const Scope scope(t.data());
  const Tensor gu = t.random(b16, {n, 2 * f}), dgu = t.empty(b16, {n, 2 * f}), h = t.random(b16, {n, f}), y = t.empty(b16, {n, f});
  const Fp8Store out = place.both(t, e4m3, n, f), gradient = place.both(t, e5m2, n, 2 * f);
  t.row("swiglu", [&](Ops& o) { o.swiglu(y, gu); });
  t.row("swiglu_fp8", [&](Ops& o) { o.swiglu_fp8(out, {}, gu); });
  t.row("swiglu_fp8 and bf16", [&](Ops& o) { o.swiglu_fp8(out, y, gu); });
  t.row("swiglu_bwd", [&](Ops& o) { o.swiglu_bwd(dgu, h, gu); });
  t.row("swiglu_bwd_fp8", [&](Ops& o) { o.swiglu_bwd_fp8(gradient, {}, h, gu); });
  t.row("swiglu_bwd_fp8 and bf16", [&](Ops& o) { o.swiglu_bwd_fp8(gradient, dgu, h, gu); });
}

void weights(Table& t, const Place& place, int64_t d, int64_t f) {
  const Scope scope(t.data());
  const Tensor master = t.random(f32, {2 * f, d}), half = t.random(b16, {2 * f, d}), w = t.empty(e4m3, {2 * f, d}),
               turned = t.empty(e4m3, {d, 2 * f});
  t.row("quantize_flat f32", [&](Ops& o) { o.quantize_flat(w, master, place.scale, place.seen); });
  t.row("quantize_flat bf16", [&](Ops& o) { o.quantize_flat(w, half, place.scale, place.seen); });
  t.row("transpose", [&](Ops& o) { o.transpose(turned, w); });
  t.row("dequantize", [&](Ops& o) { o.dequantize(half, w, place.scale); });
}

void scales(Table& t, int64_t units) {
  const Scope scope(t.data());
  const AdamwStep step;
  const std::vector<Fp8Seen> seen(static_cast<size_t>(units), {.largest = 3});
  const std::vector<float> limit(static_cast<size_t>(units), 448.0f), zero(static_cast<size_t>(units * kFp8History));
  const Tensor scale = t.upload(f32, {units, kFp8Scale}, zero.data()), history = t.upload(f32, {units, kFp8History}, zero.data()),
               met = t.upload(f64, {1, units, kFp8Seen}, seen.data()), most = t.upload(f32, {units}, limit.data()),
               at = t.upload(f64, {kAdamwStep}, &step);
  t.row("fp8_scales of 700", [&](Ops& o) { o.fp8_scales(scale, history, met, most, at); });
}

void run(std::span<const Fp8Sizes> shapes) {
  const auto backend = bench_backend();
  int64_t most = 0;
  for (const Fp8Sizes& s : shapes) most = std::max({most, s.n * std::max(s.d, s.f), 2 * s.d * s.f});
  // The largest part, SwiGLU: gu, dgu, dy, y in bf16, stores of 6 bytes; beside it a result in bf16 where a backend has it in memory.
  Table t(*backend, static_cast<size_t>(most) * 20 + (size_t{64} << 20), static_cast<size_t>(most) * 4 + (size_t{64} << 20));
  fmt::print("{}\n", backend->describe());
  copy_row(t, most * 4);
  for (const Fp8Sizes& s : shapes) {
    fmt::print("{} tokens, width {}, ffn {}\n", s.n, s.d, s.f);
    const Scope scope(t.data());
    const Place place(t);
    quantize_rows(t, place, s.n, s.d);
    quantize_rows(t, place, s.n, s.f);
    norms(t, place, s.n, s.d);
    swiglus(t, place, s.n, s.f);
    weights(t, place, s.d, s.f);
  }
  scales(t, 700);
}

}  // namespace
}  // namespace hlat

int main(int argc, char** argv) {
  const hlat::Fp8Sizes models[] = {{4096, 4096, 11008}, {16384, 4096, 11008}, {32768, 2048, 5632}, {32768, 768, 2048}};
  if (argc == 4) {
    const hlat::Fp8Sizes one[] = {{std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3])}};
    hlat::run(one);
  } else {
    hlat::run(models);
  }
  return 0;
}
