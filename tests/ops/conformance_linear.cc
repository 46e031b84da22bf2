// Rows of the linear ops: embed, matmul, add, rope. Their magnitude is the op itself on absolute values.
#include <cmath>

#include "ops/conformance.h"

namespace hlat {
namespace {

// Ids that repeat, with the last one of the vocabulary among them. A shard's table meets ids on both sides of it as well.
std::vector<int32_t> some_ids(int64_t count, int64_t vocab) {
  std::vector<int32_t> ids;
  for (int64_t n = 0; n < count; ++n) ids.push_back(static_cast<int32_t>((n * n + vocab - 1) % vocab));
  return ids;
}

void embed(Lab& lab, int64_t n, int64_t d, int64_t v, int64_t first) {
  const Twin table = lab.input({v, d}, "table"), ids = lab.ids(some_ids(n, v + 2 * first)), y = lab.output({n, d});
  lab.run([&](Ops& ops, const View& at) { ops.embed(at(y), at(ids), at(table), first); });
  lab.expect("y", y, {.rounded = false});
}

// In the worst case every row meets the same table row, and a bf16 table rounds after each of them.
void embed_bwd(Lab& lab, int64_t n, int64_t d, int64_t v, int64_t first, DType sum) {
  const Twin dy = lab.input({n, d}, "dy"), ids = lab.ids(some_ids(n, v + 2 * first));
  const Twin dtable = lab.values(sum, {v, d}, to_f64(lab.input({v, d}, "dtable").ref));
  lab.run_linear([&](Ops& ops, const View& at) { ops.embed_bwd(at(dtable), at(ids), at(dy), first); });
  const double roundings = static_cast<double>(n) * (sum == DType::bf16 ? 0x1p16 : 1);
  lab.expect_linear("dtable", dtable, roundings);
}

struct MatmulCase {
  int64_t m, n, k;
  bool trans_a = false, trans_b = false, accumulate = false, strided = false, wide_sum = false;
};

void matmul(Lab& lab, const MatmulCase& c) {
  const int64_t pad = c.strided ? 3 : 0;
  const auto operand = [&](int64_t rows, int64_t cols, const char* name) {
    return lab.input({rows, cols + 2 * pad}, name).cols(pad, pad + cols);
  };
  const Twin a = c.trans_a ? operand(c.k, c.m, "a") : operand(c.m, c.k, "a");
  const Twin b = c.trans_b ? operand(c.n, c.k, "b") : operand(c.k, c.n, "b");
  const DType type = c.wide_sum ? DType::f32 : lab.dtype();
  const Shape whole{c.m, c.n + 2 * pad};
  // Without accumulation or neighbours c holds NaN: nothing of it may survive.
  const Twin target = c.accumulate || c.strided ? lab.values(type, whole, to_f64(lab.input(whole, "c").ref)) : lab.output(type, whole);
  const Twin out = target.cols(pad, pad + c.n);
  lab.run_linear([&](Ops& ops, const View& at) {
    ops.matmul(at(out), at(a), at(b), {.trans_a = c.trans_a, .trans_b = c.trans_b, .accumulate = c.accumulate});
  });
  // cuBLASLt's Hopper kernels round the product to bf16 before they add it to a bf16 c (docs/adr/0006).
  const double product = lab.backend() == "cuda" && c.accumulate && type == DType::bf16 ? 0x1p16 : 0;
  lab.expect_linear("c", target, sum_units(c.k + 1) + product);
}

// The product and the sum are each rounded.
void matmul_add(Lab& lab, int64_t m, int64_t n, int64_t k, bool trans_b) {
  const Twin a = lab.input({m, k}, "a"), b = trans_b ? lab.input({n, k}, "b") : lab.input({k, n}, "b");
  const Twin residual = lab.input({m, n}, "residual"), c = lab.output({m, n});
  lab.run_linear([&](Ops& ops, const View& at) { ops.matmul_add(at(c), at(a), at(b), at(residual), {.trans_b = trans_b}); });
  lab.expect_linear("c", c, sum_units(k + 1) + (lab.dtype() == DType::bf16 ? 0x1p16 : 1));
}

void add_matmul_row(Table& table, const MatmulCase& c) {
  table.push_back({"matmul",
                   fmt::format("{}x{}x{}{}{}{}{}{}", c.m, c.n, c.k, c.trans_a ? " ta" : "", c.trans_b ? " tb" : "",
                               c.accumulate ? " acc" : "", c.strided ? " strided" : "", c.wide_sum ? " f32sum" : ""),
                   [c](Lab& lab) {
                     if (!c.wide_sum || lab.dtype() == DType::bf16) matmul(lab, c);
                   }});
}

void add_matmul_rows(Table& table) {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size s : {Size{1, 1, 1}, Size{1, 7, 5}, Size{3, 17, 33}, Size{16, 48, 64}, Size{5, 200, 1}, Size{65, 129, 100},
                       Size{2, 3, 1000}, Size{40, 66, 520}}) {
    for (int bits = 0; bits < 32; ++bits) {
      const MatmulCase c{s.m, s.n, s.k, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
      if (c.strided && (c.wide_sum || s.m * s.n > 1000)) continue;  // enough rows have it
      add_matmul_row(table, c);
    }
  }
  for (const Size s : {Size{1, 1, 1}, Size{3, 17, 33}, Size{64, 128, 256}, Size{40, 66, 520}})
    for (const bool trans_b : {false, true})
      table.push_back({"matmul_add", fmt::format("{}x{}x{}{}", s.m, s.n, s.k, trans_b ? " tb" : ""),
                       [=](Lab& lab) { matmul_add(lab, s.m, s.n, s.k, trans_b); }});
  // Several chunks of k and of columns, many blocks of rows, in a product that packs its operands by chunks.
  add_matmul_row(table, {.m = 33, .n = 70, .k = 5000});
  add_matmul_row(table, {.m = 33, .n = 70, .k = 5000, .accumulate = true, .strided = true});
  add_matmul_row(table, {.m = 33, .n = 70, .k = 5000, .trans_a = true, .trans_b = true, .accumulate = true, .wide_sum = true});
  add_matmul_row(table, {.m = 700, .n = 40, .k = 70, .trans_a = true});
  add_matmul_row(table, {.m = 2, .n = 2100, .k = 4200});
  add_matmul_row(table, {.m = 2, .n = 2100, .k = 4200, .trans_b = true, .accumulate = true});
}

// alias: 0 separate, 1 y is a, 2 y is b
void add(Lab& lab, const Shape& shape, int alias) {
  const Twin a = lab.input(shape, "a"), b = lab.input(shape, "b"), separate = lab.output(shape);
  const Twin& y = alias == 0 ? separate : alias == 1 ? a : b;
  lab.run([&](Ops& ops, const View& at) { ops.add(at(y), at(a), at(b)); });
  lab.expect("y", y, {.units = 1});
}

// Counts beyond what f32 holds, and beyond what any type of activations does.
void add_counts(Lab& lab, int64_t n, int alias) {
  std::vector<double> sums(static_cast<size_t>(n)), more(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = 0x1p52 - static_cast<double>(i), more[i] = static_cast<double>(i % 5);
  const Twin a = lab.values(DType::f64, {n}, sums), b = lab.values(DType::f64, {n}, more), separate = lab.output(DType::f64, {n});
  const Twin& y = alias == 0 ? separate : alias == 1 ? a : b;
  lab.run([&](Ops& ops, const View& at) { ops.add(at(y), at(a), at(b)); });
  lab.expect("y", y, {.rounded = false});
}

// Magnitude of a rotated pair: |a| + |b|. The v heads are not touched at all.
void rope(Lab& lab, const AttentionShape& s, int sign, const RopeFrequencies& frequencies) {
  const Twin table = lab.stat({s.seq, s.head_dim}), qkv = lab.input({s.tokens(), s.qkv_width()}, "qkv");
  const Tensor before = lab.memory().copy(DType::f64, qkv.ref);
  lab.run([&](Ops& ops, const View& at) { ops.rope_table(at(table), frequencies); });
  lab.expect("table", table, {.units = 4, .magnitude = std::vector<double>(static_cast<size_t>(table.ref.numel()), 1.0)});
  lab.adopt(table);
  lab.run([&](Ops& ops, const View& at) { ops.rope(at(qkv), at(table), s, sign); });
  std::vector<double> magnitude(static_cast<size_t>(before.numel()), 0.0);
  const int64_t half = s.head_dim / 2;
  for (size_t i = 0; i < magnitude.size(); ++i) {
    const int64_t column = static_cast<int64_t>(i) % s.qkv_width();
    const int64_t partner = static_cast<int64_t>(i) + (column % s.head_dim < half ? half : -half);
    if (column < (s.heads + s.kv_heads) * s.head_dim)
      magnitude[i] = std::abs(load_f64(before, static_cast<int64_t>(i))) + std::abs(load_f64(before, partner));
  }
  lab.expect("qkv", qkv, {.units = 3, .magnitude = magnitude});
  const int64_t v_begin = (s.heads + s.kv_heads) * s.head_dim;
  lab.expect("v heads", qkv.cols(v_begin, s.qkv_width()), {.rounded = false});
}

}  // namespace

void add_linear_rows(Table& table) {
  struct Lookup {
    int64_t n, d, v, first = 0;
  };
  for (const Lookup c : {Lookup{1, 1, 1}, Lookup{5, 17, 7}, Lookup{70, 64, 1000}, Lookup{40, 129, 3}, Lookup{40, 17, 5, 3},
                         Lookup{3, 8, 2, 1000}, Lookup{1000, 24, 5}, Lookup{700, 40, 300, 100}}) {
    const std::string shape = fmt::format("n{} d{} v{} first {}", c.n, c.d, c.v, c.first);
    table.push_back({"embed", shape, [c](Lab& lab) { embed(lab, c.n, c.d, c.v, c.first); }});
    table.push_back({"embed_bwd", shape, [c](Lab& lab) { embed_bwd(lab, c.n, c.d, c.v, c.first, lab.dtype()); }});
    table.push_back({"embed_bwd", shape + " f32sum", [c](Lab& lab) { embed_bwd(lab, c.n, c.d, c.v, c.first, DType::f32); }});
  }
  add_matmul_rows(table);
  for (const Shape& shape : {Shape{1}, Shape{37}, Shape{3, 17}, Shape{2, 3, 5, 7}, Shape{70000}})
    for (int alias = 0; alias < 3; ++alias)
      table.push_back({"add", fmt::format("{} alias{}", shape.str(), alias), [shape, alias](Lab& lab) { add(lab, shape, alias); }});
  for (const int64_t n : {1, 37, 70001})
    for (int alias = 0; alias < 3; ++alias)
      table.push_back({"add", fmt::format("f64 {} alias{}", n, alias), [n, alias](Lab& lab) { add_counts(lab, n, alias); }});
  for (const AttentionShape s : {AttentionShape{1, 1, 1, 1, 2}, AttentionShape{2, 5, 3, 1, 6}, AttentionShape{1, 200, 4, 2, 16},
                                 AttentionShape{2, 33, 2, 2, 64}, AttentionShape{1, 65, 6, 2, 128}})
    for (const int sign : {1, -1})
      table.push_back({"rope", fmt::format("b{} t{} h{}/{} e{} sign {}", s.batch, s.seq, s.heads, s.kv_heads, s.head_dim, sign),
                       [s, sign](Lab& lab) { rope(lab, s, sign, {}); }});
  // Heads that have waves of all three kinds of llama3: kept, stretched in part, stretched in full.
  const RopeFrequencies linear{.scaling = RopeScaling::linear, .factor = 3};
  const RopeFrequencies llama3{.scaling = RopeScaling::llama3, .factor = 8, .low_turns = 1, .high_turns = 4, .original_len = 64};
  for (const AttentionShape s : {AttentionShape{1, 200, 4, 2, 16}, AttentionShape{1, 65, 6, 2, 128}}) {
    const std::string shape = fmt::format("t{} h{}/{} e{}", s.seq, s.heads, s.kv_heads, s.head_dim);
    table.push_back({"rope", shape + " linear", [s, linear](Lab& lab) { rope(lab, s, 1, linear); }});
    table.push_back({"rope", shape + " llama3", [s, llama3](Lab& lab) { rope(lab, s, 1, llama3); }});
  }
}

}  // namespace hlat
