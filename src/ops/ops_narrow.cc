// The front of the plain ops: those that round after every step, and the rounding of strided rows.
#include "ops/contract.h"

namespace hlat {

namespace {

// bf16, or f64 where nothing is rounded.
void check_narrow(Arg arg, const Tensor& t) { HLAT_CHECK(t.dtype != DType::f32, "{}: {} is {}, expected bf16", arg.op, arg.name, t.str()); }

// Of one head, with as many keys as queries.
void check_narrow_scores(Arg arg, const Tensor& t) {
  check_matrix(arg, t);
  check_narrow(arg, t);
  HLAT_CHECK(t.dim(0) == t.dim(1), "{}: {} {}", arg.op, arg.name, t.str());
}

constexpr int64_t kNarrowNormParts = 64;  // of the rows, in the sum for dw

}  // namespace

void Ops::narrow_softmax(Tensor p, Tensor lse, Tensor scores, double scale) {
  check_narrow_scores({"narrow_softmax", "scores"}, scores);
  check({"narrow_softmax", "p"}, p, scores.shape, scores.dtype);
  check({"narrow_softmax", "lse"}, lse, {scores.dim(0)}, stat_type(scores.dtype));
  const Timed timed = count(OpKind::softmax, 5 * numel(scores) / 2, bytes_of({p, lse, scores}));
  do_narrow_softmax(p, lse, scores, scale);
}

void Ops::narrow_softmax_bwd(Tensor dscores, Tensor dp, Tensor p, double scale) {
  check_narrow_scores({"narrow_softmax_bwd", "p"}, p);
  HLAT_CHECK(!same_data(dscores, p), "narrow_softmax_bwd: p {} is dscores", p.str());
  check({"narrow_softmax_bwd", "dp"}, dp, p.shape, p.dtype);
  check({"narrow_softmax_bwd", "dscores"}, dscores, p.shape, p.dtype);
  const Timed timed = count(OpKind::softmax, 5 * numel(p) / 2, bytes_of({dscores, dp, p}));
  do_narrow_softmax_bwd(dscores, dp, p, scale);
}

void Ops::narrow_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) {
  check_norm("narrow_rmsnorm", y, rstd, x, w, eps);
  check_narrow({"narrow_rmsnorm", "x"}, x);
  const Timed timed = count(OpKind::rmsnorm, 4 * numel(x), bytes_of({y, rstd, x, w}));
  do_narrow_rmsnorm(y, rstd, x, w, eps);
}

void Ops::narrow_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args) {
  check_norm_bwd("narrow_rmsnorm_bwd", dx, dw, dy, x, w, rstd, args.add_dx);
  check_narrow({"narrow_rmsnorm_bwd", "x"}, x);
  const Timed timed = count(OpKind::rmsnorm_bwd, 8 * numel(x), bytes_of({dx, dw, dy, x, w, rstd}));
  const Scope scope(temp_);
  const int64_t parts = std::clamp<int64_t>(x.dim(0), 1, kNarrowNormParts);
  const Tensor sums = scratch(static_cast<size_t>(parts * x.dim(1)) * sizeof(float), OpKind::rmsnorm_bwd);
  do_narrow_rmsnorm_bwd(dx, dw, dy, x, w, rstd, args, sums.defined() ? sums.viewed({parts, x.dim(1)}) : sums);
}

void Ops::narrow_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) {
  check_logits("narrow_cross_entropy_partial", logits, stats, targets, first);
  check_narrow({"narrow_cross_entropy_partial", "logits"}, logits);
  const Timed timed = count(OpKind::cross_entropy, 4 * numel(logits), bytes_of({stats, logits, targets}));
  do_narrow_cross_entropy_partial(stats, logits, targets, first);
}

void Ops::narrow_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) {
  check({"narrow_cross_entropy_finish", "loss_sum"}, loss_sum, {1}, DType::f64);
  check_loss_stats("narrow_cross_entropy_finish", stats, targets);
  const Timed timed = count(OpKind::cross_entropy, 4 * static_cast<double>(stats.dim(0)), bytes_of({loss_sum, stats, targets}));
  do_narrow_cross_entropy_finish(loss_sum, stats, targets);
}

void Ops::narrow_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) {
  check_logits("narrow_cross_entropy_bwd", logits, stats, targets, first);
  check_narrow({"narrow_cross_entropy_bwd", "logits"}, logits);
  check({"narrow_cross_entropy_bwd", "dlogits"}, dlogits, logits.shape, logits.dtype);
  const Timed timed = count(OpKind::cross_entropy_bwd, 4 * numel(logits), bytes_of({dlogits, logits, stats, targets}));
  do_narrow_cross_entropy_bwd(dlogits, logits, stats, targets, first, scale);
}

void Ops::round_rows(Tensor dst, Tensor src, NoiseKey key, ElementMap map) {
  check_strided({"round_rows", "dst"}, dst);
  check_strided({"round_rows", "src"}, src);
  check_type({"round_rows", "dst"}, dst, DType::bf16);
  check_type({"round_rows", "src"}, src, DType::f32);
  HLAT_CHECK(dst.shape == src.shape && map.valid(), "round_rows: dst {}, src {}, map first {}, run {}, stride {}", dst.str(), src.str(),
             map.first, map.run, map.stride);
  const Timed timed = count(OpKind::cast, 0, bytes_of({dst, src}));
  do_round_rows(dst, src, key, map);
}

}  // namespace hlat
