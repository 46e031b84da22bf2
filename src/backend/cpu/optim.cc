// Reductions, clipping and AdamW. Sums are cut by size alone, so they do not depend on the number of threads.
#include <array>
#include <atomic>
#include <cmath>
#include <limits>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/fp8.h"

namespace hlat {

namespace {

constexpr int64_t kSumGrain = 4096;

int64_t sum_parts(int64_t n) { return std::clamp<int64_t>(n / kSumGrain, 1, kSumParts); }

// Of an update that was left out.
AdamwChange nothing_known() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {nan, nan, nan, nan, nan};
}

// v_min is infinity in parts without a v above 0.
AdamwChange change_of(const std::array<AdamwSums, kSumParts>& parts) {
  AdamwChange c{.v_min = std::numeric_limits<double>::infinity()};
  for (const AdamwSums& p : parts) {
    c.change_sq += p.change_sq;
    c.unchanged += p.unchanged;
    c.m_max = std::max(c.m_max, static_cast<double>(p.m_max));
    c.v_min = std::min(c.v_min, static_cast<double>(p.v_min));
    c.v_max = std::max(c.v_max, static_cast<double>(p.v_max));
  }
  return c;
}

AdamwArgs adamw_args(const AdamwTensors& t, const AdamwScalars& s) {
  const AdamwStep& step = *t.step.as<const AdamwStep>();
  const auto key = philox_key({s.seed, s.stream});
  AdamwArgs args{};
  args.weight = t.updated().data;
  args.master = t.master.defined() && !is_fp8(t.weight.dtype) ? t.master.as<float>() : nullptr;
  args.m = t.m.data;
  args.v = t.v.data;
  args.grad = t.grad.data;
  args.grad_scale = *t.scale.as<float>();
  args.lr = static_cast<float>(step.lr);
  args.beta1 = s.beta1;
  args.beta2 = s.beta2;
  args.eps = s.eps;
  args.decay_factor = 1.0f - args.lr * s.weight_decay;
  args.correction1 = static_cast<float>(step.correction1);
  args.correction2_rsqrt = static_cast<float>(step.correction2_rsqrt);
  args.stochastic_weights = s.round_weights == Rounding::stochastic;
  args.stochastic_moments = s.round_moments == Rounding::stochastic;
  args.key_weight[0] = key[0];
  args.key_weight[1] = key[1];
  args.step = static_cast<uint32_t>(static_cast<int64_t>(step.number));
  return args;
}

}  // namespace

double CpuOps::sum_of(Tensor x, double (*kernel)(const void*, int64_t)) {
  const int64_t n = x.numel(), parts = sum_parts(n);
  std::array<double, kSumParts> part{};
  threads_.ranges(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      const int64_t begin = n * p / parts, end = n * (p + 1) / parts;
      part[static_cast<size_t>(p)] = kernel(at(x, begin), end - begin);
    }
  });
  double total = 0;
  for (const double p : part) total += p;
  return total;
}

void CpuOps::do_sum_squares(Tensor out, std::span<const Tensor> x, Tensor /*scratch*/) {
  for (size_t i = 0; i < x.size(); ++i) out.as<double>()[i] = sum_of(x[i], kernels_.sum_squares[elem(x[i].dtype)]);
}

void CpuOps::do_sum(Tensor out, Tensor x, Tensor /*scratch*/) {
  double total = x.dtype == DType::f64 ? 0 : sum_of(x, kernels_.sum[elem(x.dtype)]);
  if (x.dtype == DType::f64)
    for (int64_t i = 0; i < x.numel(); ++i) total += x.as<double>()[i];
  *out.as<double>() = total;
}

void CpuOps::do_clip_scale(Tensor scale, Tensor sq, double max_norm) {
  double total = 0;
  for (int64_t i = 0; i < sq.numel(); ++i) total += sq.as<double>()[i];
  const double factor = max_norm > 0 ? max_norm / (std::sqrt(total) + 1e-6) : 1.0;
  *scale.as<float>() = std::isfinite(total) ? static_cast<float>(std::min(1.0, factor)) : std::numeric_limits<float>::quiet_NaN();
}

void CpuOps::do_adamw(std::span<const AdamwItem> items, Tensor /*scratch*/) {
  for (const AdamwItem& item : items) update(item.tensors, item.scalars);
}

void CpuOps::update(const AdamwTensors& t, const AdamwScalars& s) {
  if (std::isnan(*t.scale.as<float>())) {
    *t.weight_sq.as<double>() = std::numeric_limits<double>::quiet_NaN();
    if (t.change.defined()) *t.change.as<AdamwChange>() = nothing_known();
    return;
  }
  const AdamwArgs args = adamw_args(t, s);
  const auto& kernels = t.change.defined() ? kernels_.adamw_measured : kernels_.adamw;
  const auto kernel = kernels[elem(t.updated().dtype)][elem(t.m.dtype)][elem(t.grad.dtype)];
  const int64_t n = t.weight.numel(), parts = sum_parts(n);
  std::array<double, kSumParts> part{};
  std::array<AdamwSums, kSumParts> sums;
  std::array<Fp8Met, kSumParts> met{};
  sums.fill({.change_sq = 0, .unchanged = 0, .m_max = 0, .v_min = std::numeric_limits<float>::infinity(), .v_max = 0});
  threads_.ranges(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      AdamwArgs mine = args;
      mine.sums = &sums[static_cast<size_t>(p)];
      s.map.for_runs(n * p / parts, n * (p + 1) / parts, [&](int64_t begin, int64_t end, int64_t global) {
        mine.begin = begin;
        mine.end = end;
        mine.first_element = global - begin;
        part[static_cast<size_t>(p)] += kernel(mine);
        if (is_fp8(t.weight.dtype))
          store_fp8(t.weight.as<uint8_t>() + begin, t.weight.dtype, t.master, begin, end - begin, t.fp8_scale.as<float>()[0],
                    met[static_cast<size_t>(p)]);
      });
    }
  });
  double total = 0;
  for (const double p : part) total += p;
  *t.weight_sq.as<double>() = total;
  if (t.change.defined()) *t.change.as<AdamwChange>() = change_of(sums);
  for (const Fp8Met& m : met)
    if (is_fp8(t.weight.dtype)) add_met(*t.fp8_seen.as<Fp8Seen>(), m);
}

void CpuOps::do_checksum(Tensor out, Tensor x, Tensor /*scratch*/) {
  const auto bytes = static_cast<int64_t>(x.bytes());
  std::atomic<uint64_t> total = 0;  // a sum modulo 2^64: any order gives the same
  threads_.ranges((bytes + 7) / 8, kGrain, [&](int64_t begin, int64_t end) {
    total += kernels_.checksum(x.as<std::byte>() + 8 * begin, std::min(8 * end, bytes) - 8 * begin, begin);
  });
  const uint64_t sum = total;
  out.as<int32_t>()[0] = static_cast<int32_t>(sum);
  out.as<int32_t>()[1] = static_cast<int32_t>(sum >> 32);
}

void CpuOps::do_largest(Tensor out, Tensor x, bool absolute, Tensor /*scratch*/) {
  const int64_t n = x.numel(), parts = sum_parts(n);
  const auto kernel = kernels_.largest[elem(x.dtype)];
  std::array<float, kSumParts> part;
  threads_.ranges(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      const int64_t begin = n * p / parts, end = n * (p + 1) / parts;
      part[static_cast<size_t>(p)] = kernel(at(x, begin), end - begin, absolute);
    }
  });
  double& top = *out.as<double>();
  for (int64_t p = 0; p < parts; ++p) {
    const auto value = static_cast<double>(part[static_cast<size_t>(p)]);
    if (std::isnan(value) || value > top) top = value;  // NaN stays: nothing is above it
  }
}

}  // namespace hlat
