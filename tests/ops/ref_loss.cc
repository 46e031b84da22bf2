// Cross-entropy, norms, AdamW and checksums of the reference backend.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/ref_ops.h"
#include "support/host_memory.h"

namespace hlat {

void RefOps::do_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) {
  const int64_t vocab = logits.dim(1);
  for (int64_t n = 0; n < logits.dim(0); ++n) {
    const double* x = row(logits, n);
    const double max = *std::max_element(x, x + vocab);
    double sum = 0;
    for (int64_t v = 0; v < vocab; ++v) sum += std::exp(x[v] - max);
    const int64_t local = targets.as<int32_t>()[n] - first;
    const bool here = targets.as<int32_t>()[n] >= 0 && 0 <= local && local < vocab;
    row(stats, n)[0] = max;
    row(stats, n)[1] = sum;
    row(stats, n)[2] = here ? x[local] : 0;
  }
}

// m = max, s = sum of s_p exp(m_p - m), target = sum of targets (0 in the shards that do not hold it).
void RefOps::do_cross_entropy_merge(Tensor stats, Tensor parts) {
  for (int64_t n = 0; n < stats.dim(0); ++n) {
    const auto part = [&](int64_t p) { return row(parts, p) + 3 * n; };
    double max = part(0)[0], sum = 0, target = 0;
    for (int64_t p = 0; p < parts.dim(0); ++p) max = std::max(max, part(p)[0]);
    for (int64_t p = 0; p < parts.dim(0); ++p) sum += part(p)[1] * std::exp(part(p)[0] - max);
    for (int64_t p = 0; p < parts.dim(0); ++p) target += part(p)[2];
    row(stats, n)[0] = max;
    row(stats, n)[1] = sum;
    row(stats, n)[2] = target;
  }
}

void RefOps::do_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) {
  for (int64_t n = 0; n < stats.dim(0); ++n) {
    const double* s = row(stats, n);
    if (targets.as<int32_t>()[n] >= 0) row(loss_sum)[0] += std::log(s[1]) + s[0] - s[2];
  }
}

void RefOps::do_add_losses(Tensor table, Tensor stats, Tensor targets, Tensor groups, int64_t first, int64_t seq) {
  for (int64_t n = 0; n < stats.dim(0); ++n) {
    const double* s = row(stats, n);
    const int64_t token = first + n, column = token % seq * table.dim(1) / seq;
    if (targets.as<int32_t>()[n] >= 0) row(table, groups.as<int32_t>()[token / seq])[column] += std::log(s[1]) + s[0] - s[2];
  }
}

void RefOps::do_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) {
  for (int64_t n = 0; n < logits.dim(0); ++n) {
    const int64_t target = targets.as<int32_t>()[n];
    const double* s = row(stats, n);
    for (int64_t v = 0; v < logits.dim(1); ++v) {
      const double p = std::exp(row(logits, n)[v] - s[0]) / s[1];
      row(dlogits, n)[v] = target < 0 ? 0 : scale * (p - (first + v == target ? 1 : 0));
    }
  }
}

void RefOps::do_sum(Tensor out, Tensor x, Tensor /*scratch*/) {
  double sum = 0;
  for (int64_t i = 0; i < x.dim(0); ++i) sum += row(x)[i];
  row(out)[0] = sum;
}

void RefOps::do_sum_squares(Tensor out, std::span<const Tensor> x, Tensor /*scratch*/) {
  for (size_t p = 0; p < x.size(); ++p) {
    double sum = 0;
    for (int64_t i = 0; i < x[p].numel(); ++i) sum += load_f64(x[p], i) * load_f64(x[p], i);
    row(out)[p] = sum;
  }
}

void RefOps::do_clip_scale(Tensor scale, Tensor sq, double max_norm) {
  double sum = 0;
  for (int64_t i = 0; i < sq.dim(0); ++i) sum += row(sq)[i];
  const double factor = max_norm == 0 ? 1 : std::min(1.0, max_norm / (std::sqrt(sum) + 1e-6));
  store_f64(scale, 0, std::isfinite(sum) ? factor : std::nan(""));
}

namespace {

void update(const AdamwTensors& t, const AdamwScalars& s) {
  if (std::isnan(load_f64(t.scale, 0))) return store_f64(t.weight_sq, 0, std::nan(""));
  const double b1 = static_cast<double>(s.beta1);
  const double b2 = static_cast<double>(s.beta2);
  const AdamwStep& at = *t.step.as<const AdamwStep>();
  const double lr = at.lr, step = at.number;
  const double* old = t.master.defined() ? t.master.as<double>() : t.weight.as<double>();
  double squares = 0;
  AdamwChange change{.v_min = std::numeric_limits<double>::infinity()};
  for (int64_t i = 0; i < t.weight.numel(); ++i) {
    const double g = t.grad.as<double>()[i] * row(t.scale)[0];
    double& m = t.m.as<double>()[i];
    double& v = t.v.as<double>()[i];
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    const double mhat = m / (1 - std::pow(b1, step));
    const double vhat = v / (1 - std::pow(b2, step));
    const double decayed = old[i] * (1 - lr * static_cast<double>(s.weight_decay));
    const double w = decayed - lr * mhat / (std::sqrt(vhat) + static_cast<double>(s.eps));
    change.change_sq += (w - old[i]) * (w - old[i]);
    change.unchanged += w == old[i] ? 1 : 0;
    change.m_max = std::max(change.m_max, std::abs(m));
    change.v_max = std::max(change.v_max, v);
    if (v > 0) change.v_min = std::min(change.v_min, v);
    t.weight.as<double>()[i] = w;
    if (t.master.defined()) t.master.as<double>()[i] = w;
    squares += w * w;
  }
  row(t.weight_sq)[0] = squares;
  if (t.change.defined()) *t.change.as<AdamwChange>() = change;
}

}  // namespace

void RefOps::do_adamw(std::span<const AdamwItem> items, Tensor /*scratch*/) {
  for (const AdamwItem& item : items) update(item.tensors, item.scalars);
}

void RefOps::do_checksum(Tensor out, Tensor x, Tensor /*scratch*/) {
  const auto mix = [](uint64_t z) {
    z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
    z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
    return z ^ (z >> 32);
  };
  const auto* byte = x.as<unsigned char>();
  uint64_t sum = 0;
  for (size_t begin = 0; begin < x.bytes(); begin += 8) {
    uint64_t word = 0;
    for (size_t i = begin; i < std::min(begin + 8, x.bytes()); ++i) word |= uint64_t{byte[i]} << (8 * (i - begin));
    sum += mix(word + (begin / 8 + 1) * 0x9e3779b97f4a7c15u);
  }
  out.as<int32_t>()[0] = static_cast<int32_t>(sum);
  out.as<int32_t>()[1] = static_cast<int32_t>(sum >> 32);
}

void RefOps::do_largest(Tensor out, Tensor x, bool absolute, Tensor /*scratch*/) {
  double& top = row(out)[0];
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double v = absolute ? std::abs(load_f64(x, i)) : load_f64(x, i);
    if (std::isnan(v) || v > top) top = v;
  }
}

}  // namespace hlat
