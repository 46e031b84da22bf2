// The front of the plain ops: those that round after every step, and the rounding of strided rows.
#include "ops/contract.h"

namespace hlat {

namespace {

// bf16, or f64 where nothing is rounded.
void check_narrow(Arg arg, const Tensor& t) {
  check_matrix(arg, t);
  HLAT_CHECK(t.dtype != DType::f32, "{}: {} is {}, expected bf16", arg.op, arg.name, t.str());
}

void check_rows(const char* name, const Tensor& t) {
  HLAT_CHECK(t.rank() == 2 && t.stride[1] == 1 && (t.dim(0) <= 1 || t.stride[0] >= t.dim(1)), "round_rows: {} {} has strides ({}, {})",
             name, t.str(), t.stride[0], t.stride[1]);
}

constexpr int64_t kNarrowNormParts = 64;  // of the rows, in the sum for dw

}  // namespace

void Ops::narrow_softmax(Tensor p, Tensor lse, Tensor scores, double scale) {
  check_narrow({"narrow_softmax", "scores"}, scores);
  HLAT_CHECK(scores.dim(0) == scores.dim(1), "narrow_softmax: scores {}", scores.str());
  check({"narrow_softmax", "p"}, p, scores.shape, scores.dtype);
  check({"narrow_softmax", "lse"}, lse, {scores.dim(0)}, stat_type(scores.dtype));
  const Timed timed = count(OpKind::softmax, 5 * numel(scores) / 2, bytes_of({p, lse, scores}));
  do_narrow_softmax(p, lse, scores, scale);
}

void Ops::narrow_softmax_bwd(Tensor dscores, Tensor dp, Tensor p, double scale) {
  check_narrow({"narrow_softmax_bwd", "p"}, p);
  HLAT_CHECK(p.dim(0) == p.dim(1) && !same_data(dscores, p), "narrow_softmax_bwd: p {}, or it is dscores", p.str());
  check({"narrow_softmax_bwd", "dp"}, dp, p.shape, p.dtype);
  check({"narrow_softmax_bwd", "dscores"}, dscores, p.shape, p.dtype);
  const Timed timed = count(OpKind::softmax, 5 * numel(p) / 2, bytes_of({dscores, dp, p}));
  do_narrow_softmax_bwd(dscores, dp, p, scale);
}

void Ops::narrow_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) {
  check_narrow({"narrow_rmsnorm", "x"}, x);
  check({"narrow_rmsnorm", "y"}, y, x.shape, x.dtype);
  check({"narrow_rmsnorm", "rstd"}, rstd, {x.dim(0)}, stat_type(x.dtype));
  check({"narrow_rmsnorm", "w"}, w, {x.dim(1)}, x.dtype);
  HLAT_CHECK(eps >= 0, "narrow_rmsnorm: eps {}", eps);
  const Timed timed = count(OpKind::rmsnorm, 4 * numel(x), bytes_of({y, rstd, x, w}));
  do_narrow_rmsnorm(y, rstd, x, w, eps);
}

void Ops::narrow_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args) {
  check_narrow({"narrow_rmsnorm_bwd", "x"}, x);
  check({"narrow_rmsnorm_bwd", "dx"}, dx, x.shape, x.dtype);
  check({"narrow_rmsnorm_bwd", "dy"}, dy, x.shape, x.dtype);
  check({"narrow_rmsnorm_bwd", "w"}, w, {x.dim(1)}, x.dtype);
  check({"narrow_rmsnorm_bwd", "rstd"}, rstd, {x.dim(0)}, stat_type(x.dtype));
  check_shape({"narrow_rmsnorm_bwd", "dw"}, dw, {x.dim(1)});
  HLAT_CHECK(accumulates(dw.dtype, x.dtype), "narrow_rmsnorm_bwd: dw {}, x {}", dw.str(), x.str());
  HLAT_CHECK(!same_data(dx, x) && !(args.add_dx && same_data(dx, dy)), "narrow_rmsnorm_bwd: dx {} is x, or is dy with add_dx", dx.str());
  const Timed timed = count(OpKind::rmsnorm_bwd, 8 * numel(x), bytes_of({dx, dw, dy, x, w, rstd}));
  const Scope scope(temp_);
  const int64_t parts = std::clamp<int64_t>(x.dim(0), 1, kNarrowNormParts);
  const Tensor sums = scratch(static_cast<size_t>(parts * x.dim(1)) * sizeof(float), OpKind::rmsnorm_bwd);
  do_narrow_rmsnorm_bwd(dx, dw, dy, x, w, rstd, args, sums.defined() ? sums.viewed({parts, x.dim(1)}) : sums);
}

void Ops::narrow_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) {
  check_narrow({"narrow_cross_entropy_partial", "logits"}, logits);
  check({"narrow_cross_entropy_partial", "stats"}, stats, {logits.dim(0), 3}, stat_type(logits.dtype));
  check({"narrow_cross_entropy_partial", "targets"}, targets, {logits.dim(0)}, DType::i32);
  HLAT_CHECK(first >= 0 && logits.dim(1) > 0, "narrow_cross_entropy_partial: first {}, logits {}", first, logits.str());
  const Timed timed = count(OpKind::cross_entropy, 4 * numel(logits), bytes_of({stats, logits, targets}));
  do_narrow_cross_entropy_partial(stats, logits, targets, first);
}

void Ops::narrow_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) {
  check({"narrow_cross_entropy_finish", "loss_sum"}, loss_sum, {1}, DType::f64);
  HLAT_CHECK(stats.rank() == 2 && stats.dtype == stat_type(stats.dtype), "narrow_cross_entropy_finish: stats {}", stats.str());
  check_shape({"narrow_cross_entropy_finish", "stats"}, stats, {stats.dim(0), 3});
  check({"narrow_cross_entropy_finish", "targets"}, targets, {stats.dim(0)}, DType::i32);
  const Timed timed = count(OpKind::cross_entropy, 4 * static_cast<double>(stats.dim(0)), bytes_of({loss_sum, stats, targets}));
  do_narrow_cross_entropy_finish(loss_sum, stats, targets);
}

void Ops::narrow_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) {
  check_narrow({"narrow_cross_entropy_bwd", "logits"}, logits);
  check({"narrow_cross_entropy_bwd", "dlogits"}, dlogits, logits.shape, logits.dtype);
  check({"narrow_cross_entropy_bwd", "stats"}, stats, {logits.dim(0), 3}, stat_type(logits.dtype));
  check({"narrow_cross_entropy_bwd", "targets"}, targets, {logits.dim(0)}, DType::i32);
  HLAT_CHECK(first >= 0, "narrow_cross_entropy_bwd: first {}", first);
  const Timed timed = count(OpKind::cross_entropy_bwd, 4 * numel(logits), bytes_of({dlogits, logits, stats, targets}));
  do_narrow_cross_entropy_bwd(dlogits, logits, stats, targets, first, scale);
}

void Ops::round_rows(Tensor dst, Tensor src, NoiseKey key, ElementMap map) {
  check_rows("dst", dst);
  check_rows("src", src);
  check_type({"round_rows", "dst"}, dst, DType::bf16);
  check_type({"round_rows", "src"}, src, DType::f32);
  HLAT_CHECK(dst.shape == src.shape && map.valid(), "round_rows: dst {}, src {}, map first {}, run {}, stride {}", dst.str(), src.str(),
             map.first, map.run, map.stride);
  const Timed timed = count(OpKind::cast, 0, bytes_of({dst, src}));
  do_round_rows(dst, src, key, map);
}

}  // namespace hlat
