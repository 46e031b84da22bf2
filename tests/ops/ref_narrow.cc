// The plain ops of the reference backend: in f64 nothing is rounded, so they are the ops whose arithmetic they show, and a softmax.
#include <algorithm>
#include <cmath>

#include "ops/ref_ops.h"

namespace hlat {

void RefOps::do_narrow_softmax(Tensor p, Tensor lse, Tensor scores, double scale) {
  for (int64_t t = 0; t < scores.dim(0); ++t) {
    double* out = row(p, t);
    for (int64_t i = 0; i <= t; ++i) out[i] = scale * row(scores, t)[i];
    const double max = *std::max_element(out, out + t + 1);
    double sum = 0;
    for (int64_t i = 0; i <= t; ++i) sum += std::exp(out[i] - max);
    for (int64_t i = 0; i <= t; ++i) out[i] = std::exp(out[i] - max) / sum;
    std::fill(out + t + 1, out + scores.dim(1), 0.0);
    row(lse)[t] = max + std::log(sum);
  }
}

void RefOps::do_narrow_softmax_bwd(Tensor dscores, Tensor dp, Tensor p, double scale) {
  for (int64_t t = 0; t < p.dim(0); ++t) {
    double sum = 0;
    for (int64_t i = 0; i <= t; ++i) sum += row(p, t)[i] * row(dp, t)[i];
    for (int64_t i = 0; i < p.dim(1); ++i) row(dscores, t)[i] = i <= t ? scale * row(p, t)[i] * (row(dp, t)[i] - sum) : 0;
  }
}

void RefOps::do_narrow_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) { do_rmsnorm(y, rstd, x, w, eps); }

void RefOps::do_narrow_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args, Tensor scratch) {
  do_rmsnorm_bwd(dx, dw, dy, x, w, rstd, args, scratch);
}

void RefOps::do_narrow_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) {
  do_cross_entropy_partial(stats, logits, targets, first);
}

void RefOps::do_narrow_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) {
  do_cross_entropy_finish(loss_sum, stats, targets);
}

void RefOps::do_narrow_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) {
  do_cross_entropy_bwd(dlogits, logits, stats, targets, first, scale);
}

// Its contract has no f64: it is not asked for.
void RefOps::do_round_rows(Tensor dst, Tensor /*src*/, NoiseKey /*key*/, const ElementMap& /*map*/) {
  HLAT_CHECK(false, "the reference backend rounds nothing to {}", dst.str());
}

}  // namespace hlat
