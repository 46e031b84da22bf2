#include "health/sum_check.h"

#include <cmath>

#include "health/rounding.h"

namespace hlat {

SumCheck::SumCheck(const Mesh& mesh, const ParamStore& params, Region& io)
    : dp_(mesh.along(Axis::dp)),
      ranks_(mesh.ranks_along(Axis::dp)),
      params_(params),
      sampled_(params.precision().grad == DType::bf16 && params.precision().dp_sum == DType::bf16 &&
               dp_.summation() == Summation::library) {
  if (dp_.size() == 1) return;
  for (size_t b = 0; b < params.buckets().size(); ++b)
    for (const ParamId id : params.buckets()[b].params)
      for (int r = 0; r < dp_.size(); ++r) add_shares(id, b, r, part_of(params.buckets()[b].grad.numel(), r, dp_.size()));
  const auto shares = static_cast<int64_t>(shares_.size());
  sums_ = io.alloc(DType::f64, {shares * kColumns}, "sums of gradients");
  if (sampled_) samples_ = io.alloc(DType::f32, {shares * 2 * kSampled}, "samples of gradients");
}

void SumCheck::add_shares(ParamId id, size_t bucket, int owner, Part elements) {
  const int64_t first = std::max(params_.offset(id), elements.begin);
  const int64_t last = std::min(params_.offset(id) + params_.grad(id).numel(), elements.end());
  const int64_t step = sampled_ ? kSampledFrom : std::max<int64_t>(last - first, 1);
  for (int64_t begin = first; begin < last; begin += step)
    shares_.push_back({.param = id, .bucket = bucket, .begin = begin, .end = std::min(begin + step, last), .owner = owner});
}

Tensor SumCheck::sample_of(size_t share, Column column) const {
  const int64_t at = (2 * static_cast<int64_t>(share) + (column == kBefore ? 0 : 1)) * kSampled;
  return samples_.rows(at, at + kSampled);
}

void SumCheck::clear(Ops& ops, size_t share, Column column) const {
  const int64_t at = static_cast<int64_t>(share) * kColumns + column;
  ops.fill(sums_.rows(at, at + 2), 0);
  if (sampled_) ops.fill(sample_of(share, column), 0);
}

void SumCheck::measure(Ops& ops, size_t share, Column column) const {
  const ParamShare& p = shares_[share];
  const int64_t end = sampled_ ? std::min(p.end, p.begin + kSampled) : p.end, n = end - p.begin;
  const Tensor x = params_.buckets()[p.bucket].grad.rows(p.begin, end);
  const int64_t at = static_cast<int64_t>(share) * kColumns + column;
  if (sampled_) {
    if (n < kSampled) clear(ops, share, column);
    ops.cast(sample_of(share, column).rows(0, n), x);
  }
  ops.sum(sums_.rows(at, at + 1), x);
  ops.sum_squares(sums_.rows(at + 1, at + 2), x);
}

void SumCheck::before(Ops& ops, size_t bucket) const {
  for (size_t i = 0; i < shares_.size(); ++i)
    if (shares_[i].bucket == bucket) measure(ops, i, kBefore);
}

SumCheck::Verdict SumCheck::compare_sums(const ParamShare& p, const double* s) const {
  const Precision& policy = params_.precision();
  const bool narrowed = policy.grad == DType::f32 && policy.dp_sum == DType::bf16;  // terms were rounded too, and by a library each sum
  const double terms = narrowed ? s[kBeforeSq] * dp_.size() : 0;
  const double ulps = narrowed || policy.gradients == Rounding::stochastic ? 2 : 1;  // of errors that are half a step to the nearest
  return {
      .error = std::abs(s[kAfter] - s[kBefore]),
      .bound = ulps * rounding_bound(narrowed ? DType::bf16 : policy.grad, dp_.size(), p.end - p.begin, s[kBeforeSq], s[kAfterSq] + terms),
      .words = fmt::format("adds up to {:.9g}, what the ranks put in to {:.9g}", s[kAfter], s[kBefore])};
}

SumCheck::Verdict SumCheck::compare_samples(const ParamShare& p, const double* s, const float* samples) const {
  double squares = 0, error_squares = 0;
  for (int64_t i = 0; i < kSampled; ++i) {
    const double exact = samples[i], stored = samples[kSampled + i];
    squares += exact * exact;
    error_squares += (stored - exact) * (stored - exact);
  }
  const int64_t n = std::min(kSampled, p.end - p.begin);
  const double error = std::sqrt(error_squares), bound = chained_rounding_bound(dp_.size(), n, s[kBeforeSq], squares);
  return {.error = error, .bound = bound, .words = fmt::format("differs in {} elements by {:.3g} of {:.3g}", n, error, std::sqrt(squares))};
}

std::optional<std::string> SumCheck::difference(Ops& ops, Device& device) const {
  if (shares_.empty()) return {};
  for (size_t i = 0; i < shares_.size(); ++i) {
    if (shares_[i].owner == dp_.rank())
      measure(ops, i, kAfter);
    else
      clear(ops, i, kAfter);
  }
  dp_.all_reduce(sums_);
  std::vector<double> sums(static_cast<size_t>(sums_.numel()));
  device.download(sums.data(), sums_);
  std::vector<float> samples;
  if (sampled_) {
    dp_.all_reduce(samples_);
    samples.resize(static_cast<size_t>(samples_.numel()));
    device.download(samples.data(), samples_);
  }
  dp_.check();  // a group that gave up lets the device go, with any values
  for (size_t i = 0; i < shares_.size(); ++i) {
    const ParamShare& p = shares_[i];
    const double* s = sums.data() + i * kColumns;
    const Verdict v = sampled_ ? compare_samples(p, s, samples.data() + i * 2 * kSampled) : compare_sums(p, s);
    if (!std::isfinite(v.error) || v.error <= v.bound) continue;
    return fmt::format("gradients of {} are summed wrongly over dp ranks {}: the share of rank {} {}; rounding explains {:.1e}",
                       params_.spec(p.param).name, fmt::join(ranks_, ", "), ranks_[static_cast<size_t>(p.owner)], v.words, v.bound);
  }
  return {};
}

}  // namespace hlat
