// The front of the op set: contract checks, cost counting and scratch, once for all backends.
// Counting rules. FLOPs: a multiply, an add, a division or an elementary function is one; causal attention counts only
// the pairs it needs, T(T+1)/2 per head, 2 products forward and 5 backward (scores are recomputed there).
// Bytes: every argument is read or written once; accumulation reads its target as well.
// Here: counting and the layers' ops. ops_loss.cc: cross-entropy. ops_narrow.cc: plain forms. ops_optim.cc: casts, fills, reductions,
// AdamW. ops_fp8.cc: FP8.
#include "ops/ops.h"

#include "base/machine.h"
#include "ops/contract.h"

namespace hlat {

namespace {

void check_attention(const char* op, const Tensor& qkv, const AttentionShape& s) {
  HLAT_CHECK(s.batch > 0 && s.seq > 0 && s.heads > 0 && s.kv_heads > 0 && s.head_dim > 0 && s.heads % s.kv_heads == 0,
             "{}: batch {}, seq {}, heads {}, kv_heads {}, head_dim {}", op, s.batch, s.seq, s.heads, s.kv_heads, s.head_dim);
  check_matrix({op, "qkv"}, qkv);
  check_shape({op, "qkv"}, qkv, {s.tokens(), s.qkv_width()});
}

double causal_pairs(const AttentionShape& s) {
  return static_cast<double>(s.batch * s.heads) * static_cast<double>(s.seq) * (static_cast<double>(s.seq) + 1) / 2;
}

// A longer table serves shorter sequences.
void check_rope(const char* op, const Tensor& table, const Tensor& qkv, const AttentionShape& s) {
  check_matrix({op, "table"}, table);
  HLAT_CHECK(table.dim(0) >= s.seq && table.dim(1) == s.head_dim && table.dtype == stat_type(qkv.dtype), "{}: table {}, qkv {}, seq {}", op,
             table.str(), qkv.str(), s.seq);
}

double rotated(const AttentionShape& s) { return static_cast<double>(s.tokens() * (s.heads + s.kv_heads) * s.head_dim); }
double rope_bytes(const Tensor& table, const AttentionShape& s) {
  return static_cast<double>(s.seq * s.head_dim) * static_cast<double>(size_of(table.dtype));
}

std::string label(const MatmulShape& s) {
  return fmt::format("{}x{}x{} {}{}{}{}", s.m, s.n, s.k, s.trans_a ? 't' : 'n', s.trans_b ? 't' : 'n', s.accumulate ? " +=" : "",
                     is_fp8(s.a) ? " fp8" : "");
}

}  // namespace

Ops::Timed::Timed(Ops* ops, OpCost* op, OpCost* detail)
    : ops_(ops), op_(op), detail_(detail), start_(op == nullptr ? 0 : ops->mark_time()) {}

Ops::Timed::~Timed() {
  if (op_ == nullptr) return;
  try {
    ops_->spans_.push_back({op_, detail_, start_, ops_->mark_time()});
  } catch (const Error&) {  // a device's errors stay: its next call throws it again, from where one may throw
  }
}

size_t Ops::mark_time() {
  finish();
  marks_.push_back(now_s());
  return marks_.size() - 1;
}

double Ops::seconds_between(size_t from, size_t to) { return marks_[to] - marks_[from]; }

void Ops::collect_times() {
  finish();
  for (const Span& s : spans_) {
    const double seconds = seconds_between(s.from, s.to);
    s.op->seconds += seconds;
    if (s.detail != nullptr) s.detail->seconds += seconds;
  }
  spans_.clear();
  forget_marks();
}

Ops::Timed Ops::count(OpKind kind, double flops, double bytes, const MatmulShape* shape, bool fast_sums) {
  TracedOp op{.kind = static_cast<uint8_t>(kind), .dims = {}, .flops = flops, .bytes = bytes};
  if (shape != nullptr) {
    op.dtype = static_cast<uint8_t>(shape->a);
    op.out = static_cast<uint8_t>(shape->c);
    op.form = static_cast<uint8_t>((shape->trans_a ? 1 : 0) | (shape->trans_b ? 2 : 0) | (shape->accumulate ? 4 : 0) | (fast_sums ? 8 : 0));
    op.dims = {shape->m, shape->n, shape->k};
  }
  return count(op, shape);
}

Ops::Timed Ops::count(OpKind kind, double flops, double bytes, const AttentionShape& shape, DType dtype) {
  return count({.kind = static_cast<uint8_t>(kind),
                .dtype = static_cast<uint8_t>(dtype),
                .dims = {shape.batch * shape.heads, shape.seq, shape.head_dim},
                .flops = flops,
                .bytes = bytes},
               nullptr);
}

Ops::Timed Ops::count(const TracedOp& op_call, const MatmulShape* shape) {
  const auto add = [&](OpCost& c) {
    ++c.calls;
    c.flops += op_call.flops;
    c.bytes += op_call.bytes;
    return &c;
  };
  if (flight_ != nullptr) flight_->op(op_call.kind);
  if (trace_ != nullptr) trace_->op(op_call);
  OpCost* op = add(cost_.op[op_call.kind]);
  if (!timing_) return {this, nullptr, nullptr};
  return {this, op, shape == nullptr ? nullptr : add(cost_.matmuls[label(*shape)])};
}

Tensor Ops::scratch(size_t bytes, OpKind kind) {
  if (bytes == 0) return {};
  return temp_.alloc(DType::f32, {static_cast<int64_t>((bytes + 3) / 4)}, name_of(kind));
}

void Ops::embed(Tensor y, Tensor ids, Tensor table, int64_t first) {
  check_matrix({"embed", "table"}, table);
  HLAT_CHECK(ids.rank() == 1, "embed: ids is {}", ids.str());
  check({"embed", "ids"}, ids, {ids.dim(0)}, DType::i32);
  check({"embed", "y"}, y, {ids.dim(0), table.dim(1)}, table.dtype);
  HLAT_CHECK(first >= 0, "embed: first {}", first);
  const Timed timed = count(OpKind::embed, 0, bytes_of({y, y, ids}));
  do_embed(y, ids, table, first);
}

void Ops::embed_bwd(Tensor dtable, Tensor ids, Tensor dy, int64_t first) {
  check_matrix({"embed_bwd", "dtable"}, dtable);
  check_matrix({"embed_bwd", "dy"}, dy);
  check({"embed_bwd", "ids"}, ids, {dy.dim(0)}, DType::i32);
  HLAT_CHECK(dtable.dim(1) == dy.dim(1) && accumulates(dtable.dtype, dy.dtype), "embed_bwd: dtable {}, dy {}", dtable.str(), dy.str());
  HLAT_CHECK(first >= 0, "embed_bwd: first {}", first);
  const Timed timed = count(OpKind::embed_bwd, numel(dy), bytes_of({ids, dy}) + 2 * numel(dy) * static_cast<double>(size_of(dtable.dtype)));
  const Scope scope(temp_);
  do_embed_bwd(dtable, ids, dy, first, scratch(embed_bwd_scratch(dy.dim(0), dy.dim(1)), OpKind::embed_bwd));
}

// A sum of no terms.
void Ops::empty_product(Tensor c, bool accumulate) {
  if (accumulate || c.numel() == 0) return;
  if (c.is_contiguous()) return do_fill(c, 0);
  for (int64_t i = 0; i < c.dim(0); ++i) do_fill(c.rows(i, i + 1), 0);
}

namespace {

MatmulShape checked_product(const Tensor& c, const Tensor& a, const Tensor& b, const Ops::MatmulArgs& args) {
  check_strided({"matmul", "c"}, c);
  check_strided({"matmul", "a"}, a);
  check_strided({"matmul", "b"}, b);
  const MatmulShape s{.m = a.dim(args.trans_a ? 1 : 0),
                      .n = b.dim(args.trans_b ? 0 : 1),
                      .k = a.dim(args.trans_a ? 0 : 1),
                      .trans_a = args.trans_a,
                      .trans_b = args.trans_b,
                      .accumulate = args.accumulate,
                      .a = a.dtype,
                      .b = b.dtype,
                      .c = c.dtype};
  HLAT_CHECK(c.dim(0) == s.m && c.dim(1) == s.n && b.dim(args.trans_b ? 1 : 0) == s.k, "matmul: c {}, a {}{}, b {}{}", c.str(), a.str(),
             args.trans_a ? "^T" : "", b.str(), args.trans_b ? "^T" : "");
  HLAT_CHECK(a.dtype == b.dtype && accumulates(c.dtype, a.dtype), "matmul: c {}, a {}, b {}", c.str(), a.str(), b.str());
  HLAT_CHECK(!same_data(c, a) && !same_data(c, b), "matmul: c {} is an operand", c.str());
  return s;
}

double product_flops(const MatmulShape& s) { return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k); }

}  // namespace

void Ops::matmul(Tensor c, Tensor a, Tensor b, MatmulArgs args) {
  const MatmulShape s = checked_product(c, a, b, args);
  const Timed timed = count(OpKind::matmul, product_flops(s), bytes_of({a, b, c}) + (args.accumulate ? bytes_of({c}) : 0), &s);
  if (s.m == 0 || s.n == 0 || s.k == 0) return empty_product(c, args.accumulate);
  const Scope scope(temp_);
  do_matmul(c, a, b, s, scratch(matmul_scratch(s), OpKind::matmul));
}

void Ops::matmul_add(Tensor c, Tensor a, Tensor b, Tensor residual, MatmulArgs args) {
  const MatmulShape s = checked_product(c, a, b, args);
  check_flat({"matmul_add", "c"}, c);
  check({"matmul_add", "residual"}, residual, c.shape, c.dtype);
  HLAT_CHECK(!args.accumulate && !same_data(c, residual), "matmul_add: c {} holds the residual", c.str());
  const Timed timed = count(OpKind::matmul, product_flops(s) + numel(c), bytes_of({a, b, c, residual}), &s);
  if (s.m == 0 || s.n == 0) return;
  if (s.k == 0) return do_cast(c, residual, Rounding::nearest, {}, {});
  const Scope scope(temp_);
  do_matmul_add(c, a, b, residual, s, scratch(matmul_scratch(s), OpKind::matmul));
}

void Ops::do_matmul_add(Tensor c, Tensor a, Tensor b, Tensor residual, const MatmulShape& s, Tensor scratch) {
  do_matmul(c, a, b, s, scratch);
  do_add(c, residual, c);
}

void Ops::rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) {
  check_norm("rmsnorm", y, rstd, x, w, eps);
  const Timed timed = count(OpKind::rmsnorm, 4 * numel(x), bytes_of({y, rstd, x, w}));
  do_rmsnorm(y, rstd, x, w, eps);
}

void Ops::add_rmsnorm(Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps) {
  check_norm("add_rmsnorm", y, rstd, x, w, eps);
  check({"add_rmsnorm", "sum"}, sum, x.shape, x.dtype);
  check({"add_rmsnorm", "delta"}, delta, x.shape, x.dtype);
  HLAT_CHECK(!same_data(sum, y), "add_rmsnorm: sum {} is y", sum.str());
  const Timed timed = count(OpKind::add_rmsnorm, 5 * numel(x), bytes_of({sum, y, rstd, x, delta, w}));
  do_add_rmsnorm(sum, y, rstd, x, delta, w, eps);
}

void Ops::rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args) {
  check_norm_bwd("rmsnorm_bwd", dx, dw, dy, x, w, rstd, args.add_dx);
  const Timed timed =
      count(OpKind::rmsnorm_bwd, (args.add_dx ? 9 : 8) * numel(x),
            bytes_of({dx, dw, dy, x, w, rstd}) + (args.add_dx ? bytes_of({dx}) : 0) + (args.accumulate_dw ? bytes_of({dw}) : 0));
  const Scope scope(temp_);
  do_rmsnorm_bwd(dx, dw, dy, x, w, rstd, args, scratch(rmsnorm_bwd_scratch(x.dim(0), x.dim(1)), OpKind::rmsnorm_bwd));
}

// Not counted: the table is made once, outside the step.
void Ops::rope_table(Tensor table, const RopeFrequencies& frequencies) {
  check_matrix({"rope_table", "table"}, table);
  HLAT_CHECK(table.dtype == stat_type(table.dtype) && table.dim(1) % 2 == 0, "rope_table: table {}", table.str());
  HLAT_CHECK(frequencies.theta > 0 && frequencies.factor > 0, "rope_table: theta {}, factor {}", frequencies.theta, frequencies.factor);
  HLAT_CHECK(frequencies.scaling != RopeScaling::llama3 || frequencies.low_turns < frequencies.high_turns,
             "rope_table: all is stretched below {} turns, nothing above {}", frequencies.low_turns, frequencies.high_turns);
  do_rope_table(table, frequencies);
}

void Ops::rope(Tensor qkv, Tensor table, AttentionShape s, int sign) {
  check_attention("rope", qkv, s);
  HLAT_CHECK(s.head_dim % 2 == 0 && (sign == 1 || sign == -1), "rope: head_dim {}, sign {}", s.head_dim, sign);
  check_rope("rope", table, qkv, s);
  const Timed timed = count(OpKind::rope, 3 * rotated(s), 2 * rotated(s) * static_cast<double>(size_of(qkv.dtype)) + rope_bytes(table, s));
  do_rope(qkv, table, s, sign);
}

void Ops::attention(Tensor out, Tensor lse, Tensor qkv, AttentionShape s) {
  check_attention("attention", qkv, s);
  check({"attention", "out"}, out, {s.tokens(), s.out_width()}, qkv.dtype);
  check({"attention", "lse"}, lse, {s.batch, s.heads, s.seq}, stat_type(qkv.dtype));
  HLAT_CHECK(!same_data(out, qkv), "attention: out {} is qkv", out.str());
  const Timed timed =
      count(OpKind::attention, 4 * static_cast<double>(s.head_dim) * causal_pairs(s), bytes_of({out, lse, qkv}), s, qkv.dtype);
  const Scope scope(temp_);
  do_attention(out, lse, qkv, s, scratch(attention_scratch(s, qkv.dtype, false), OpKind::attention));
}

void Ops::attention_bwd(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor rope) {
  check_attention("attention_bwd", qkv, s);
  check({"attention_bwd", "dqkv"}, dqkv, qkv.shape, qkv.dtype);
  check({"attention_bwd", "dout"}, dout, {s.tokens(), s.out_width()}, qkv.dtype);
  check({"attention_bwd", "out"}, out, {s.tokens(), s.out_width()}, qkv.dtype);
  check({"attention_bwd", "lse"}, lse, {s.batch, s.heads, s.seq}, stat_type(qkv.dtype));
  HLAT_CHECK(!same_data(dqkv, qkv) && !same_data(dqkv, dout) && !same_data(dqkv, out), "attention_bwd: dqkv {} is an input", dqkv.str());
  const bool inverse = rope.defined();
  if (inverse) check_rope("attention_bwd", rope, qkv, s);
  const Timed timed = count(OpKind::attention_bwd, 10 * static_cast<double>(s.head_dim) * causal_pairs(s) + (inverse ? 3 * rotated(s) : 0),
                            bytes_of({dqkv, dout, out, lse, qkv}) + (inverse ? rope_bytes(rope, s) : 0), s, qkv.dtype);
  const Scope scope(temp_);
  const Tensor space = scratch(attention_scratch(s, qkv.dtype, true), OpKind::attention_bwd);
  if (inverse)
    do_attention_bwd_rope(dqkv, dout, out, lse, qkv, rope, s, space);
  else
    do_attention_bwd(dqkv, dout, out, lse, qkv, s, space);
}

void Ops::do_attention_bwd_rope(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, Tensor rope, AttentionShape s,
                                Tensor scratch) {
  do_attention_bwd(dqkv, dout, out, lse, qkv, s, scratch);
  do_rope(dqkv, rope, s, -1);
}

void Ops::swiglu(Tensor y, Tensor gu) {
  check_matrix({"swiglu", "y"}, y);
  check({"swiglu", "gu"}, gu, {y.dim(0), 2 * y.dim(1)}, y.dtype);
  const Timed timed = count(OpKind::swiglu, 5 * numel(y), bytes_of({y, gu}));
  do_swiglu(y, gu);
}

void Ops::swiglu_bwd(Tensor dgu, Tensor dy, Tensor gu) {
  check_matrix({"swiglu_bwd", "dy"}, dy);
  check({"swiglu_bwd", "gu"}, gu, {dy.dim(0), 2 * dy.dim(1)}, dy.dtype);
  check({"swiglu_bwd", "dgu"}, dgu, gu.shape, dy.dtype);
  const Timed timed = count(OpKind::swiglu_bwd, 11 * numel(dy), bytes_of({dgu, dy, gu}));
  do_swiglu_bwd(dgu, dy, gu);
}

void Ops::add(Tensor y, Tensor a, Tensor b) {
  check_flat({"add", "y"}, y);
  check({"add", "a"}, a, y.shape, y.dtype);
  check({"add", "b"}, b, y.shape, y.dtype);
  const Timed timed = count(OpKind::add, numel(y), bytes_of({y, a, b}));
  do_add(y, a, b);
}

}  // namespace hlat
