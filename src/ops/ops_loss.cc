// The front of cross-entropy.
#include "ops/contract.h"

namespace hlat {

void Ops::cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) {
  check_logits("cross_entropy_partial", logits, stats, targets, first);
  const Timed timed = count(OpKind::cross_entropy, 4 * numel(logits), bytes_of({stats, logits, targets}));
  do_cross_entropy_partial(stats, logits, targets, first);
}

void Ops::cross_entropy_merge(Tensor stats, Tensor parts) {
  HLAT_CHECK(parts.rank() == 3 && parts.dim(0) > 0 && parts.dtype == stat_type(parts.dtype), "cross_entropy_merge: parts {}", parts.str());
  check_shape({"cross_entropy_merge", "parts"}, parts, {parts.dim(0), parts.dim(1), 3});
  check({"cross_entropy_merge", "stats"}, stats, {parts.dim(1), 3}, parts.dtype);
  for (int64_t p = 1; p < parts.dim(0); ++p)
    HLAT_CHECK(!same_data(stats, parts.rows(p, p + 1)), "cross_entropy_merge: stats {} is part {}", stats.str(), p);
  const Timed timed = count(OpKind::cross_entropy, 5 * numel(parts) / 3, bytes_of({stats, parts}));
  do_cross_entropy_merge(stats, parts);
}

void Ops::cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) {
  check({"cross_entropy_finish", "loss_sum"}, loss_sum, {1}, DType::f64);
  check_loss_stats("cross_entropy_finish", stats, targets);
  const Timed timed = count(OpKind::cross_entropy, 4 * static_cast<double>(stats.dim(0)), bytes_of({loss_sum, stats, targets}));
  do_cross_entropy_finish(loss_sum, stats, targets);
}

void Ops::cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) {
  check_logits("cross_entropy_bwd", logits, stats, targets, first);
  check({"cross_entropy_bwd", "dlogits"}, dlogits, logits.shape, logits.dtype);
  const Timed timed = count(OpKind::cross_entropy_bwd, 4 * numel(logits), bytes_of({dlogits, logits, stats, targets}));
  do_cross_entropy_bwd(dlogits, logits, stats, targets, first, scale);
}

void Ops::cross_entropy_whole(Tensor loss_sum, Tensor logits, Tensor stats, Tensor targets, double scale) {
  check_logits("cross_entropy_whole", logits, stats, targets, 0);
  check({"cross_entropy_whole", "loss_sum"}, loss_sum, {1}, DType::f64);
  const Timed timed = count(OpKind::cross_entropy, 8 * numel(logits), bytes_of({logits, logits, stats, targets, loss_sum}));
  do_cross_entropy_whole(loss_sum, logits, stats, targets, scale);
}

void Ops::do_cross_entropy_whole(Tensor loss_sum, Tensor logits, Tensor stats, Tensor targets, double scale) {
  do_cross_entropy_partial(stats, logits, targets, 0);
  do_cross_entropy_finish(loss_sum, stats, targets);
  do_cross_entropy_bwd(logits, logits, stats, targets, 0, scale);
}

void Ops::add_losses(Tensor table, Tensor stats, Tensor targets, Tensor groups, int64_t first, int64_t seq) {
  HLAT_CHECK(table.rank() == 2 && table.dtype == DType::f64 && table.is_contiguous(), "add_losses: table {}", table.str());
  check_loss_stats("add_losses", stats, targets);
  HLAT_CHECK(groups.rank() == 1 && groups.dtype == DType::i32 && groups.is_contiguous(), "add_losses: groups {}", groups.str());
  HLAT_CHECK(seq > 0 && 0 < table.dim(1) && table.dim(1) <= seq && 0 <= first && first + stats.dim(0) <= groups.dim(0) * seq,
             "add_losses: {} tokens from {} of {} rows of {}, in {} parts", stats.dim(0), first, groups.dim(0), seq, table.dim(1));
  const Timed timed = count(OpKind::add_losses, 4 * static_cast<double>(stats.dim(0)), bytes_of({table, table, stats, targets, groups}));
  if (stats.dim(0) > 0) do_add_losses(table, stats, targets, groups, first, seq);
}

}  // namespace hlat
