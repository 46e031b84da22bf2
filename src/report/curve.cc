#include "report/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hlat {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// What stays of points [begin, end), as indices in ascending order.
std::vector<size_t> standing_out(const Curve& curve, size_t begin, size_t end) {
  size_t low = end, high = end, gap = end;
  for (size_t i = begin; i < end; ++i) {
    const double v = curve.value[i];
    if (!std::isfinite(v)) {
      if (gap == end) gap = i;
      continue;
    }
    if (low == end || v < curve.value[low]) low = i;
    if (high == end || v > curve.value[high]) high = i;
  }
  std::vector<size_t> kept;
  for (const size_t i : {low, high, gap})
    if (i != end) kept.push_back(i);
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

// Of each value and two on both sides; at the ends of as many as there are on the shorter side, so that a slope stays.
std::vector<double> medians_of_five(const std::vector<double>& values) {
  std::vector<double> out;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t half = std::min({size_t{2}, i, values.size() - 1 - i});
    const auto middle = values.begin() + static_cast<ptrdiff_t>(i);
    out.push_back(finite_median({middle - static_cast<ptrdiff_t>(half), middle + static_cast<ptrdiff_t>(half) + 1}));
  }
  return out;
}

}  // namespace

Curve thinned(const Curve& curve, size_t most) {
  const size_t n = curve.size();
  if (n <= most) return curve;
  const bool gaps = std::any_of(curve.value.begin(), curve.value.end(), [](double v) { return !std::isfinite(v); });
  const size_t stretches = (most - 2) / (gaps ? 3 : 2);
  Curve out;
  const auto keep = [&](size_t i) { out.add(curve.step[i], curve.value[i]); };
  keep(0);
  for (size_t s = 0; s < stretches; ++s)  // of what lies between the first and the last
    for (const size_t i : standing_out(curve, 1 + s * (n - 2) / stretches, 1 + (s + 1) * (n - 2) / stretches)) keep(i);
  keep(n - 1);
  return out;
}

double smoothing_steps(const Curve& curve) { return std::max(2.0, static_cast<double>(curve.size()) / 100); }

Curve smoothed(const Curve& curve, double steps) {
  const auto reach = static_cast<ptrdiff_t>(std::ceil(2 * steps));
  std::vector<double> weight(static_cast<size_t>(reach) + 1);
  for (size_t d = 0; d < weight.size(); ++d) weight[d] = std::exp(-0.5 * std::pow(static_cast<double>(d) / steps, 2));
  const auto n = static_cast<ptrdiff_t>(curve.size());
  Curve out{.step = curve.step, .value = std::vector<double>(curve.size(), kUnknown)};
  const std::vector<double> calm = medians_of_five(curve.value);
  // Of a long curve few points are shown: means around these few are all that is needed, and the others lie between them.
  const ptrdiff_t stride = std::max<ptrdiff_t>(1, reach / 16);
  ptrdiff_t before = -1;
  for (ptrdiff_t i = 0; i < n; i = i + stride < n || i == n - 1 ? i + stride : n - 1) {
    double sum = 0, all = 0;
    for (ptrdiff_t k = std::max<ptrdiff_t>(0, i - reach); k <= std::min(n - 1, i + reach); ++k) {
      const double v = calm[static_cast<size_t>(k)], w = weight[static_cast<size_t>(std::abs(k - i))];
      if (std::isfinite(v)) sum += w * v, all += w;
    }
    const double mean = all > 0 ? sum / all : kUnknown;
    out.value[static_cast<size_t>(i)] = mean;
    for (ptrdiff_t k = before + 1; before >= 0 && k < i; ++k) {
      const double share = static_cast<double>(k - before) / static_cast<double>(i - before);
      out.value[static_cast<size_t>(k)] = (1 - share) * out.value[static_cast<size_t>(before)] + share * mean;
    }
    before = i;
  }
  return out;
}

Curve stretch_means(const Curve& curve, size_t most) {
  const size_t n = curve.size(), stretches = std::min(n, most);
  Curve out;
  for (size_t s = 0; s < stretches; ++s) {
    const size_t begin = s * n / stretches, end = (s + 1) * n / stretches;
    double sum = 0;
    size_t count = 0;
    for (size_t i = begin; i < end; ++i)
      if (std::isfinite(curve.value[i])) sum += curve.value[i], ++count;
    out.add(curve.step[end - 1], count > 0 ? sum / static_cast<double>(count) : kUnknown);
  }
  return out;
}

double last_finite(const Curve& curve) {
  const auto last = std::find_if(curve.value.rbegin(), curve.value.rend(), [](double v) { return std::isfinite(v); });
  return last == curve.value.rend() ? kUnknown : *last;
}

}  // namespace hlat
