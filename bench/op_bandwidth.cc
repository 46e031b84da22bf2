// How near each memory-bound op comes to the machine's copy rate: op_bandwidth [TOKENS [WIDTH]].
// Shapes are those of a 7B model; the copy is measured in the same run.
#include <cstdlib>

#include "support/bandwidth_table.h"

namespace hlat {
namespace {

constexpr DType f32 = DType::f32, b16 = DType::bf16;

struct Sizes {
  int64_t n, d;
  int64_t f() const { return d * 43 / 16; }  // 11008 of 4096
  int64_t vocab() const { return 32000; }
  int64_t chunk() const { return n / 4; }  // tokens whose logits exist
};

void layers(Table& t, const Sizes& s, DType type) {
  const Scope scope(t.data());
  const Tensor x = t.random(type, {s.n, s.d}), y = t.random(type, {s.n, s.d}), z = t.empty(type, {s.n, s.d}), w = t.random(type, {s.d}),
               rstd = t.empty(f32, {s.n}), dw = t.random(f32, {s.d});
  t.row("add", [&](Ops& o) { o.add(z, x, y); });
  t.row("rmsnorm", [&](Ops& o) { o.rmsnorm(z, rstd, x, w, 1e-5); });
  t.row("rmsnorm_bwd", [&](Ops& o) { o.rmsnorm_bwd(z, dw, y, x, w, rstd, {}); });
  t.row("rmsnorm_bwd add, accumulate", [&](Ops& o) { o.rmsnorm_bwd(z, dw, y, x, w, rstd, {.add_dx = true, .accumulate_dw = true}); });
  const Tensor sum = t.empty(type, {s.n, s.d});
  t.row("add_rmsnorm", [&](Ops& o) { o.add_rmsnorm(sum, z, rstd, x, y, w, 1e-5); });
  const AttentionShape a{.batch = 1, .seq = s.n, .heads = s.d / 128, .kv_heads = s.d / 128, .head_dim = 128};
  const Tensor qkv = t.random(type, {s.n, a.qkv_width()}), angles = t.empty(f32, {s.n, 128});
  t.row("rope", [&](Ops& o) { o.rope(qkv, angles, a, 1); });
  const Tensor gu = t.random(type, {s.n, 2 * s.f()}), dgu = t.empty(type, {s.n, 2 * s.f()}), h = t.random(type, {s.n, s.f()});
  t.row("swiglu_bwd", [&](Ops& o) { o.swiglu_bwd(dgu, h, gu); });
  t.row("swiglu", [&](Ops& o) { o.swiglu(h, gu); });
}

void tokens(Table& t, const Sizes& s, DType type) {
  const Scope scope(t.data());
  const Tensor logits = t.random(type, {s.chunk(), s.vocab()}), dlogits = t.empty(type, logits.shape), stats = t.empty(f32, {s.chunk(), 3}),
               targets = t.ids(s.chunk(), s.vocab()), loss = t.empty(DType::f64, {1});
  t.row("cross_entropy_partial", [&](Ops& o) { o.cross_entropy_partial(stats, logits, targets, 0); });
  t.row("cross_entropy_finish", [&](Ops& o) { o.cross_entropy_finish(loss, stats, targets); });
  t.row("cross_entropy_bwd", [&](Ops& o) { o.cross_entropy_bwd(dlogits, logits, stats, targets, 0, 1e-4); });
  const Tensor table = t.random(type, {s.vocab(), s.d}), x = t.random(type, {s.n, s.d}), ids = t.ids(s.n, s.vocab()),
               dtable = t.random(f32, table.shape);
  t.row("embed", [&](Ops& o) { o.embed(x, ids, table, 0); });
  t.row("embed_bwd to f32", [&](Ops& o) { o.embed_bwd(dtable, ids, x, 0); });
  t.row("embed_bwd", [&](Ops& o) { o.embed_bwd(table, ids, x, 0); });
}

void update(Table& t, const char* name, int64_t n, DType moment, DType grad, bool master, Rounding rounding) {
  const Scope scope(t.data());
  const AdamwStep values = AdamwStep::of(1e-4, 5, AdamwScalars{}.beta1, AdamwScalars{}.beta2);
  const AdamwTensors tensors{.weight = t.random(b16, {n}, 0.02),
                             .master = master ? t.random(f32, {n}, 0.02) : Tensor{},
                             .m = t.random(moment, {n}, 1e-3),
                             .v = t.random(moment, {n}, 0),
                             .grad = t.random(grad, {n}, 1e-3),
                             .scale = t.random(f32, {1}),
                             .step = t.upload(DType::f64, {kAdamwStep}, &values),
                             .weight_sq = t.empty(DType::f64, {1})};
  const AdamwItem item{tensors, {.weight_decay = 0.1f, .round_weights = rounding, .round_moments = rounding, .seed = 1, .stream = 2}};
  t.row(name, [&](Ops& o) { o.adamw({&item, 1}); });
}

void flat(Table& t, int64_t n) {
  const Scope scope(t.data());
  const Tensor x = t.random(f32, {n}), half = t.random(b16, {n}), out = t.empty(DType::f64, {1}), mark = t.empty(DType::i32, {2});
  t.row("cast f32 to bf16", [&](Ops& o) { o.cast(half, x); });
  t.row("cast f32 to bf16, stochastic", [&](Ops& o) { o.cast(half, x, Rounding::stochastic, {.seed = 1}); });
  t.row("cast bf16 to f32", [&](Ops& o) { o.cast(x, half); });
  t.row("fill", [&](Ops& o) { o.fill(x, 1); });
  t.row("fill_normal", [&](Ops& o) { o.fill_normal(half, 1, {.seed = 1}); });
  t.row("sum_squares f32", [&](Ops& o) { o.sum_squares(out, x); });
  t.row("sum_squares bf16", [&](Ops& o) { o.sum_squares(out, half); });
  t.row("checksum", [&](Ops& o) { o.checksum(mark, x); });
}

void run(const Sizes& s) {
  const auto backend = bench_backend();
  const int64_t flat_size = 4 * s.n * s.d;
  Table t(*backend, static_cast<size_t>(flat_size) * 24 + (size_t{1} << 30), size_t{64} << 20);
  fmt::print("{}\n{} tokens, width {}\n", backend->describe(), s.n, s.d);
  copy_row(t, flat_size * 2);
  layers(t, s, b16);
  tokens(t, s, b16);
  flat(t, flat_size);
  update(t, "adamw mixed (f32 master, moments)", flat_size, f32, f32, true, Rounding::nearest);
  update(t, "adamw mixed_sr", flat_size, f32, f32, true, Rounding::stochastic);
  update(t, "adamw bf16_sr", flat_size, b16, b16, false, Rounding::stochastic);
  update(t, "adamw bf16", flat_size, b16, b16, false, Rounding::nearest);
  fmt::print("f32:\n");
  layers(t, {s.n / 2, s.d}, f32);
  tokens(t, {s.n / 2, s.d}, f32);
}

}  // namespace
}  // namespace hlat

int main(int argc, char** argv) {
  hlat::run({argc > 1 ? std::atoll(argv[1]) : 16384, argc > 2 ? std::atoll(argv[2]) : 4096});
  return 0;
}
