#include "bench/op_cases.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "backend/null/null_ops.h"

namespace hlat {
namespace {

Tensor in(Memory& m, DType t, const Shape& shape) { return m[Purpose::saved].alloc(t, shape, "input"); }
Tensor out(Memory& m, DType t, const Shape& shape) { return m[Purpose::io].alloc(t, shape, "output"); }

constexpr std::array<OpKind, 16> kMemoryOps = {
    OpKind::embed,       OpKind::embed_bwd,         OpKind::rmsnorm, OpKind::add_rmsnorm,   OpKind::rmsnorm_bwd, OpKind::rope,
    OpKind::swiglu,      OpKind::swiglu_bwd,        OpKind::add,     OpKind::cross_entropy, OpKind::cast,        OpKind::fill,
    OpKind::sum_squares, OpKind::cross_entropy_bwd, OpKind::adamw,   OpKind::quantize};

std::vector<std::byte> bytes_at(const void* data, size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  return {from, from + bytes};
}

// Token ids of a text that meets the whole vocabulary.
PlacedOp::HostData some_ids(const Tensor& to, int64_t vocab) {
  if (to.data == nullptr) return {to, {}};  // the dry run's
  std::vector<int32_t> ids(static_cast<size_t>(to.numel()));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(vocab));
  return {to, bytes_at(ids.data(), ids.size() * sizeof(int32_t))};
}

// Rows of `width` elements so that `per_element` bytes of each make up `bytes`.
int64_t rows_for(double bytes, double per_element, int64_t width) {
  return std::max<int64_t>(1, std::llround(bytes / (per_element * static_cast<double>(width))));
}

PlacedOp place_norm(Memory& m, OpKind kind, double bytes, const CaseWidths& w) {
  const DType t = w.precision.compute;
  const double size = static_cast<double>(size_of(t));
  const double tensors = kind == OpKind::rmsnorm ? 2 : kind == OpKind::add_rmsnorm ? 4 : 3;
  const int64_t d = w.hidden, n = rows_for(bytes, tensors * size, d);
  const Tensor x = in(m, t, {n, d}), weight = in(m, t, {d}), rstd = out(m, DType::f32, {n}), y = out(m, t, {n, d});
  if (kind == OpKind::rmsnorm) return {.call = [=](Ops& ops) { ops.rmsnorm(y, rstd, x, weight, 1e-5); }};
  const Tensor other = in(m, t, {n, d});
  if (kind == OpKind::rmsnorm_bwd) {
    const Tensor dw = out(m, w.precision.grad, {d});
    return {.call = [=](Ops& ops) { ops.rmsnorm_bwd(y, dw, other, x, weight, rstd, {.accumulate_dw = true}); }};
  }
  const Tensor sum = out(m, t, {n, d});
  return {.call = [=](Ops& ops) { ops.add_rmsnorm(sum, y, rstd, x, other, weight, 1e-5); }};
}

PlacedOp place_embed(Memory& m, bool backward, double bytes, const CaseWidths& w) {
  const DType t = w.precision.compute;
  const double size = static_cast<double>(size_of(t)), grad = static_cast<double>(size_of(w.precision.grad));
  const int64_t d = w.hidden, n = rows_for(bytes, backward ? size + 2 * grad : 2 * size, d), v = w.vocab;
  const Tensor ids = out(m, DType::i32, {n});
  if (backward) {
    const Tensor dy = in(m, t, {n, d}), dtable = out(m, w.precision.grad, {v, d});
    return {.call = [=](Ops& ops) { ops.embed_bwd(dtable, ids, dy, 0); }, .uploads = {some_ids(ids, v)}};
  }
  const Tensor table = in(m, t, {v, d}), y = out(m, t, {n, d});
  return {.call = [=](Ops& ops) { ops.embed(y, ids, table, 0); }, .uploads = {some_ids(ids, v)}};
}

PlacedOp place_rope(Memory& m, double bytes, const CaseWidths& w) {
  const DType t = w.precision.compute;
  AttentionShape s{.batch = 1, .heads = w.heads, .kv_heads = w.kv_heads, .head_dim = w.head_dim};
  const int64_t rotated = (w.heads + w.kv_heads) * w.head_dim, n = rows_for(bytes, 2.0 * static_cast<double>(size_of(t)), rotated);
  s.seq = std::min(n, w.tokens);
  s.batch = std::max<int64_t>(1, n / s.seq);
  const Tensor qkv = out(m, t, {s.tokens(), s.qkv_width()}), table = in(m, DType::f32, {s.seq, s.head_dim});
  return {.call = [=](Ops& ops) { ops.rope(qkv, table, s, 1); }};
}

PlacedOp place_swiglu(Memory& m, bool backward, double bytes, const CaseWidths& w) {
  const DType t = w.precision.compute;
  const int64_t f = w.ffn, n = rows_for(bytes, (backward ? 5.0 : 3.0) * static_cast<double>(size_of(t)), f);
  const Tensor gu = in(m, t, {n, 2 * f});
  if (!backward) {
    const Tensor y = out(m, t, {n, f});
    return {.call = [=](Ops& ops) { ops.swiglu(y, gu); }};
  }
  const Tensor dgu = out(m, t, {n, 2 * f}), dy = in(m, t, {n, f});
  return {.call = [=](Ops& ops) { ops.swiglu_bwd(dgu, dy, gu); }};
}

PlacedOp place_loss(Memory& m, bool backward, double bytes, const CaseWidths& w) {
  const DType t = w.precision.compute;
  const int64_t v = w.vocab, n = rows_for(bytes, 2.0 * static_cast<double>(size_of(t)), v);
  const Tensor targets = out(m, DType::i32, {n}), stats = out(m, DType::f32, {n, 3}), logits = out(m, t, {n, v});
  if (backward)
    return {.call = [=](Ops& ops) { ops.cross_entropy_bwd(logits, logits, stats, targets, 0, 1e-3); }, .uploads = {some_ids(targets, v)}};
  const Tensor loss = out(m, DType::f64, {1});
  return {.call = [=](Ops& ops) { ops.cross_entropy_whole(loss, logits, stats, targets, 1e-3); }, .uploads = {some_ids(targets, v)}};
}

PlacedOp place_flat(Memory& m, OpKind kind, double bytes, const CaseWidths& w) {
  const DType t = w.precision.compute;
  const double size = static_cast<double>(size_of(t));
  const auto elements = [&](double per_element) { return rows_for(bytes, per_element, 1); };
  if (kind == OpKind::add) {
    const int64_t n = elements(3 * size);
    const Tensor y = out(m, t, {n}), a = in(m, t, {n}), b = in(m, t, {n});
    return {.call = [=](Ops& ops) { ops.add(y, a, b); }};
  }
  if (kind == OpKind::cast) {
    const int64_t n = elements(4 + size);
    const Tensor y = out(m, t, {n}), x = in(m, DType::f32, {n});
    return {.call = [=](Ops& ops) { ops.cast(y, x); }};
  }
  const DType grad = w.precision.grad;
  const int64_t n = elements(static_cast<double>(size_of(grad)));
  if (kind == OpKind::fill) {
    const Tensor y = out(m, grad, {n});
    return {.call = [=](Ops& ops) { ops.fill(y, 0); }};
  }
  const Tensor sum = out(m, DType::f64, {1}), x = in(m, grad, {n});
  return {.call = [=](Ops& ops) { ops.sum_squares(sum, x); }};
}

// A scale of FP8 values of common size, and its inverse.
Tensor unit_scale(Memory& m, std::vector<PlacedOp::HostData>& uploads) {
  constexpr std::array<float, kFp8Scale> one = {1, 1, 1, 1, 1, 1, 1, 1};
  const Tensor scale = out(m, DType::f32, {kFp8Scale});
  uploads.push_back({scale, bytes_at(one.data(), sizeof one)});
  return scale;
}

PlacedOp place_quantize(Memory& m, double bytes, const CaseWidths& w) {
  const int64_t d = w.hidden, n = rows_for(bytes, 4, d);  // reads 2 bytes, stores rows and columns
  PlacedOp op;
  const Tensor x = in(m, DType::bf16, {n, d}), seen = out(m, DType::f64, {kFp8Seen});
  const Fp8Store store{
      .rows = out(m, DType::f8e4m3, {n, d}), .columns = out(m, DType::f8e4m3, {d, n}), .scale = unit_scale(m, op.uploads), .seen = seen};
  op.prepare = [=](Ops& ops) { ops.fill(seen, 0); };
  op.call = [=](Ops& ops) { ops.quantize(store, x); };
  return op;
}

// Of a policy with FP8 products the weight is in FP8, as most are.
PlacedOp place_adamw(Memory& m, double bytes, const CaseWidths& w) {
  const Precision& p = w.precision;
  const auto size = [](DType t) { return static_cast<double>(size_of(t)); };
  const double weight = p.fp8 ? 1 : size(p.weight), master = p.master ? 4 : size(p.weight);
  const double per_element = weight + 4 * size(p.moment) + size(p.grad) + (p.master || p.fp8 ? 2 * master : weight);
  const int64_t n = rows_for(bytes, per_element, 1);
  AdamwItem item;
  AdamwTensors& a = item.tensors;
  PlacedOp op;
  a.weight = out(m, p.fp8 ? DType::f8e4m3 : p.weight, {n});
  if (p.master || p.fp8) a.master = out(m, p.master ? DType::f32 : p.weight, {n});
  if (p.fp8) {
    a.fp8_scale = unit_scale(m, op.uploads);
    a.fp8_seen = out(m, DType::f64, {kFp8Seen});
  }
  a.m = out(m, p.moment, {n});
  a.v = out(m, p.moment, {n});
  a.grad = in(m, p.grad, {n});
  a.scale = in(m, DType::f32, {1});
  a.step = in(m, DType::f64, {kAdamwStep});
  a.weight_sq = out(m, DType::f64, {1});
  item.scalars.round_weights = p.weights;
  item.scalars.round_moments = p.moments;
  const AdamwStep step = AdamwStep::of(1e-4, 10, item.scalars.beta1, item.scalars.beta2);
  const float scale = 1;
  op.uploads.push_back({a.step, bytes_at(&step, sizeof step)});
  op.uploads.push_back({a.scale, bytes_at(&scale, sizeof scale)});
  op.prepare = [a](Ops& ops) {
    ops.fill(a.v, 1e-4);
    if (a.fp8_seen.defined()) ops.fill(a.fp8_seen, 0);
  };
  op.call = [item](Ops& ops) { ops.adamw({&item, 1}); };
  return op;
}

PlacedOp place_memory_op(Memory& m, OpKind kind, double bytes, const CaseWidths& w) {
  switch (kind) {
    case OpKind::embed:
    case OpKind::embed_bwd: return place_embed(m, kind == OpKind::embed_bwd, bytes, w);
    case OpKind::rmsnorm:
    case OpKind::add_rmsnorm:
    case OpKind::rmsnorm_bwd: return place_norm(m, kind, bytes, w);
    case OpKind::rope: return place_rope(m, bytes, w);
    case OpKind::swiglu:
    case OpKind::swiglu_bwd: return place_swiglu(m, kind == OpKind::swiglu_bwd, bytes, w);
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_bwd: return place_loss(m, kind == OpKind::cross_entropy_bwd, bytes, w);
    case OpKind::adamw: return place_adamw(m, bytes, w);
    case OpKind::quantize: return place_quantize(m, bytes, w);
    default: return place_flat(m, kind, bytes, w);
  }
}

TracedOp product(DType type, DType to, uint8_t form, int64_t m, int64_t n, int64_t k) {
  TracedOp o{.kind = static_cast<uint8_t>(OpKind::matmul), .dims = {m, n, k}};
  o.dtype = static_cast<uint8_t>(type);
  o.out = static_cast<uint8_t>(to);
  o.form = form;
  o.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return o;
}

// A trace has the type of the first operand; the second is E4M3: a gradient is always the first one. Values are those of normal numbers.
OpCase fp8_product_case(const TracedOp& op) {
  const int64_t m = op.dims[0], n = op.dims[1], k = op.dims[2];
  const auto type = static_cast<DType>(op.dtype), to = static_cast<DType>(op.out);
  const Ops::Fp8MatmulArgs args{.accumulate = (op.form & 4) != 0, .fast_sums = (op.form & 8) != 0};
  const auto sum = static_cast<double>(m * n) * static_cast<double>(size_of(to));
  const bool residual = op.bytes > static_cast<double>((m + n) * k) + sum * (args.accumulate ? 2 : 1);
  const auto place = [=](Memory& memory) -> PlacedOp {
    PlacedOp placed;
    const Tensor c = out(memory, to, {m, n}), wide_a = in(memory, DType::bf16, {m, k}), wide_b = in(memory, DType::bf16, {n, k});
    const Fp8Operand a{out(memory, type, {m, k}), unit_scale(memory, placed.uploads)};
    const Fp8Operand b{out(memory, DType::f8e4m3, {n, k}), unit_scale(memory, placed.uploads)};
    placed.prepare = [=](Ops& ops) {
      ops.quantize_flat(a.values, wide_a, a.scale, {});
      ops.quantize_flat(b.values, wide_b, b.scale, {});
    };
    const Tensor r = residual ? in(memory, to, {m, n}) : Tensor{};
    placed.call = [=](Ops& ops) { ops.matmul_fp8(c, a, b, r, args); };
    return placed;
  };
  return {.kind = OpKind::matmul, .type = DType::bf16, .place = place};
}

}  // namespace

size_t trace_case(OpCase& c) {
  Memory memory;
  StepTrace trace;
  NullOps ops(memory[Purpose::temp]);
  ops.trace_to(trace);
  c.place(memory).call(ops);
  HLAT_CHECK(trace.ops().size() == 1, "{}: a case of {} ops", name_of(c.kind), trace.ops().size());
  c.traced = trace.ops().front();
  return memory.high_water().total();
}

CaseWidths widths_of(const Config& config) {
  const ModelConfig& m = config.model;
  const int64_t tp = config.parallel.tp;
  return {.hidden = m.hidden,
          .ffn = std::max<int64_t>(1, m.ffn / tp),
          .vocab = std::max<int64_t>(1, m.vocab / tp),
          .heads = std::max<int64_t>(1, m.heads / tp),
          .kv_heads = std::max<int64_t>(1, m.kv() / tp),
          .head_dim = m.head_dim(),
          .tokens = config.train.seq_len,
          .precision = precision_of(config)};
}

OpCase product_case(const TracedOp& op) {
  if (is_fp8(static_cast<DType>(op.dtype))) return fp8_product_case(op);
  const int64_t m = op.dims[0], n = op.dims[1], k = op.dims[2];
  const auto type = static_cast<DType>(op.dtype), to = static_cast<DType>(op.out);
  const bool ta = (op.form & 1) != 0, tb = (op.form & 2) != 0, accumulate = (op.form & 4) != 0;
  // A product with a residual counts one more FLOP for each element.
  const bool residual = op.flops > 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const auto place = [=](Memory& memory) -> PlacedOp {
    const Tensor c = out(memory, to, {m, n}), a = in(memory, type, ta ? Shape{k, m} : Shape{m, k}),
                 b = in(memory, type, tb ? Shape{n, k} : Shape{k, n});
    const Ops::MatmulArgs args{.trans_a = ta, .trans_b = tb, .accumulate = accumulate};
    if (!residual) return {.call = [=](Ops& ops) { ops.matmul(c, a, b, args); }};
    const Tensor r = in(memory, to, {m, n});
    return {.call = [=](Ops& ops) { ops.matmul_add(c, a, b, r, args); }};
  };
  return {.kind = OpKind::matmul, .type = type, .place = place};
}

OpCase attention_case(const AttentionCaseShape& a) {
  const auto place = [=](Memory& memory) -> PlacedOp {
    const AttentionShape& s = a.shape;
    const Tensor qkv = in(memory, a.type, {s.tokens(), s.qkv_width()});
    const Tensor lse = out(memory, DType::f32, {s.batch, s.heads, s.seq}), o = out(memory, a.type, {s.tokens(), s.out_width()});
    if (!a.backward) return {.call = [=](Ops& ops) { ops.attention(o, lse, qkv, s); }};
    const Tensor dout = in(memory, a.type, {s.tokens(), s.out_width()}), dqkv = out(memory, a.type, {s.tokens(), s.qkv_width()});
    const Tensor rope = in(memory, DType::f32, {s.seq, s.head_dim});
    return {.call = [=](Ops& ops) { ops.attention_bwd(dqkv, dout, o, lse, qkv, s, rope); },
            .prepare = [=](Ops& ops) { ops.attention(o, lse, qkv, s); }};
  };
  return {.kind = a.backward ? OpKind::attention_bwd : OpKind::attention, .type = a.type, .place = place};
}

OpCase memory_case(OpKind kind, double bytes, const CaseWidths& w) {
  if (std::find(kMemoryOps.begin(), kMemoryOps.end(), kind) == kMemoryOps.end()) return {.kind = kind, .type = w.precision.compute};
  return {.kind = kind, .type = w.precision.compute, .place = [=](Memory& m) { return place_memory_op(m, kind, bytes, w); }};
}

std::vector<OpCase> standard_cases(const CaseWidths& w) {
  std::vector<OpCase> cases;
  const DType type = w.precision.compute, grad = w.precision.grad;
  for (const int64_t n : {512, 2048, 8192, 32768})
    for (const int64_t d : {256, 768, 2048, 4096, 8192})
      for (const int64_t f : {d, 4 * d}) {
        cases.push_back(product_case(product(type, type, 2, n, f, d)));  // forward
        cases.push_back(product_case(product(type, type, 0, n, d, f)));  // by input
        cases.push_back(product_case(product(type, grad, 5, f, d, n)));  // by weight
        if (!w.precision.fp8) continue;
        cases.push_back(product_case(product(DType::f8e4m3, type, 2 | 8, n, f, d)));
        cases.push_back(product_case(product(w.precision.fp8_grad, type, 2, n, d, f)));
        if (w.precision.fp8_weight_grads) cases.push_back(product_case(product(w.precision.fp8_grad, grad, 2 | 4, f, d, n)));
      }
  for (const int64_t tokens : {512, 1024, 2048, 4096, 8192})
    for (const int64_t e : {64, 128})
      for (const int64_t heads : {8, 32, 256})
        for (const bool backward : {false, true})
          cases.push_back(attention_case({.shape = {.batch = 1, .seq = tokens, .heads = heads, .kv_heads = heads, .head_dim = e},
                                          .type = type,
                                          .backward = backward}));
  for (const OpKind kind : kMemoryOps) {
    if (kind == OpKind::quantize && !w.precision.fp8) continue;
    for (const double bytes : {65536.0, 1048576.0, 16777216.0, 268435456.0}) cases.push_back(memory_case(kind, bytes, w));
  }
  for (OpCase& c : cases) trace_case(c);
  return cases;
}

std::vector<OpCase> step_cases(const Config& config, const std::vector<const StepTrace*>& traces) {
  const CaseWidths w = widths_of(config);
  std::set<TracedOp> distinct;
  for (const StepTrace* t : traces) distinct.insert(t->ops().begin(), t->ops().end());
  std::vector<OpCase> cases;
  for (const TracedOp& o : distinct) {
    const auto kind = static_cast<OpKind>(o.kind);
    if (kind == OpKind::matmul) {
      cases.push_back(product_case(o));
    } else if (kind == OpKind::attention || kind == OpKind::attention_bwd) {
      const int64_t batch = o.dims[0] % config.train.micro_batch == 0 ? config.train.micro_batch : 1, heads = o.dims[0] / batch;
      const int64_t group = config.model.heads / config.model.kv();
      cases.push_back(attention_case({.shape = {.batch = batch,
                                                .seq = o.dims[1],
                                                .heads = heads,
                                                .kv_heads = heads % group == 0 ? heads / group : 1,
                                                .head_dim = o.dims[2]},
                                      .type = static_cast<DType>(o.dtype),
                                      .backward = kind == OpKind::attention_bwd}));
    } else if (o.bytes > 0) {
      OpCase c = memory_case(kind, o.bytes, w);
      if (c.place) cases.push_back(std::move(c));
    }
  }
  for (OpCase& c : cases) {
    c.needed = true;
    trace_case(c);
  }
  return cases;
}

}  // namespace hlat
