#include "health/sum_check.h"

#include <cmath>

namespace hlat {

double rounding_bound(DType dtype, int ranks, int64_t n, double squares_before, double squares_after) {
  const double u = dtype == DType::f64 ? 0x1p-53 : 0x1p-24, v = dtype == DType::bf16 ? 0x1p-8 : 0, s = ranks;
  const double spread = s * (s - 1) * u * u * squares_before + v * v * squares_after;
  // Below the smallest normal number of bf16 the error of a store has a fixed size.
  return 8 * std::sqrt(spread) + (dtype == DType::bf16 ? static_cast<double>(n) * 0x1p-134 : 0);
}

SumCheck::SumCheck(const Mesh& mesh, const ParamStore& params, Region& io)
    : dp_(mesh.along(Axis::dp)), ranks_(mesh.ranks_along(Axis::dp)), params_(params) {
  if (dp_.size() == 1) return;
  for (size_t b = 0; b < params.buckets().size(); ++b) {
    const Bucket& bucket = params.buckets()[b];
    for (const ParamId id : bucket.params) {
      const int64_t first = params.offset(id), last = first + params.grad(id).numel();
      for (int r = 0; r < dp_.size(); ++r) {
        const Part share = part_of(bucket.grad.numel(), r, dp_.size());
        const int64_t begin = std::max(first, share.begin), end = std::min(last, share.end());
        if (begin < end) shares_.push_back({.param = id, .bucket = b, .begin = begin, .end = end, .owner = r});
      }
    }
  }
  sums_ = io.alloc(DType::f64, {static_cast<int64_t>(shares_.size()) * kColumns}, "sums of gradients");
}

void SumCheck::measure(Ops& ops, size_t share, Column column) const {
  const ParamShare& p = shares_[share];
  const Tensor x = params_.buckets()[p.bucket].grad.rows(p.begin, p.end);
  const int64_t at = static_cast<int64_t>(share) * kColumns + column;
  ops.sum(sums_.rows(at, at + 1), x);
  ops.sum_squares(sums_.rows(at + 1, at + 2), x);
}

void SumCheck::before(Ops& ops, size_t bucket) const {
  for (size_t i = 0; i < shares_.size(); ++i)
    if (shares_[i].bucket == bucket) measure(ops, i, kBefore);
}

std::optional<std::string> SumCheck::difference(Ops& ops, Device& device) const {
  if (shares_.empty()) return {};
  for (size_t i = 0; i < shares_.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) * kColumns;
    if (shares_[i].owner == dp_.rank())
      measure(ops, i, kAfter);
    else
      ops.fill(sums_.rows(at + kAfter, at + kColumns), 0);
  }
  dp_.all_reduce(sums_);
  std::vector<double> sums(static_cast<size_t>(sums_.numel()));
  device.download(sums.data(), sums_);
  dp_.check();  // a group that gave up lets the device go, with any values
  for (size_t i = 0; i < shares_.size(); ++i) {
    const ParamShare& p = shares_[i];
    const double* s = sums.data() + i * kColumns;
    const double error = std::abs(s[kAfter] - s[kBefore]);
    const double bound = rounding_bound(params_.precision().grad, dp_.size(), p.end - p.begin, s[kBeforeSq], s[kAfterSq]);
    if (!std::isfinite(error) || error <= bound) continue;
    return fmt::format(
        "gradients of {} are summed wrongly over dp ranks {}: the share of rank {} adds up to {:.9g}, what the ranks put in to {:.9g}; "
        "rounding explains {:.1e}",
        params_.spec(p.param).name, fmt::join(ranks_, ", "), ranks_[static_cast<size_t>(p.owner)], s[kAfter], s[kBefore], bound);
  }
  return {};
}

}  // namespace hlat
