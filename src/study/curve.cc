#include "study/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "record/run_curves.h"

namespace hlat {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kFewest = 20, kFewestForSlope = 300;

// Of the line fitted to (x, y), as its value at `at` and its slope.
struct LineFit {
  double value = 0, slope = 0;
};

LineFit fit_line(std::span<const double> x, std::span<const double> y, double at) {
  const auto n = static_cast<double>(y.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n, mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, xy = 0;
  for (size_t i = 0; i < y.size(); ++i) xx += (x[i] - mean_x) * (x[i] - mean_x), xy += (x[i] - mean_x) * (y[i] - mean_y);
  const double slope = xx > 0 ? xy / xx : 0;
  return {mean_y + slope * (at - mean_x), slope};
}

std::vector<double> places(size_t count) {
  std::vector<double> x(count);
  std::iota(x.begin(), x.end(), 0.0);
  return x;
}

std::vector<double> part(std::span<const double> values, double begin, double end) {
  const auto n = static_cast<double>(values.size());
  return {values.begin() + static_cast<std::ptrdiff_t>(begin * n), values.begin() + static_cast<std::ptrdiff_t>(end * n)};
}

// Medians of the values i-16 .. i+16, at the ends of those that there are.
std::vector<double> smooth(std::span<const double> values) {
  constexpr size_t kHalf = 16;
  std::vector<double> out;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t begin = i < kHalf ? 0 : i - kHalf, end = std::min(values.size(), i + kHalf + 1);
    out.push_back(finite_median({values.begin() + static_cast<std::ptrdiff_t>(begin), values.begin() + static_cast<std::ptrdiff_t>(end)}));
  }
  return out;
}

// Of each list of a monitor the mean of what is known in it, where something is.
Curve list_means(const ListCurve& list) {
  Curve out;
  for (size_t i = 0; i < list.step.size(); ++i) {
    double sum = 0, count = 0;
    for (const double v : list.values[i])
      if (std::isfinite(v)) sum += v, ++count;
    if (count > 0) out.add(list.step[i], sum / count);
  }
  return out;
}

}  // namespace

size_t final_count(size_t values) {
  const size_t most = std::max<size_t>(1, values / 5);
  return std::min({values, most, std::clamp<size_t>(values / 20, 20, 100)});
}

double final_value(std::span<const double> values) {
  if (values.empty()) return kNaN;
  const auto last = values.last(final_count(values.size()));
  return std::accumulate(last.begin(), last.end(), 0.0) / static_cast<double>(last.size());
}

double noise_around_curve(std::span<const double> values) {
  const size_t n = values.size();
  if (n < kFewest) return kNaN;
  const size_t half = n < 100 ? std::max<size_t>(2, n / 8) : 25, width = 2 * half + 1;
  const std::vector<double> x = places(width);
  double squares = 0, count = 0;
  for (size_t i = std::max(n / 2, half); i + half < n; ++i) {
    const double residual = values[i] - fit_line(x, values.subspan(i - half, width), static_cast<double>(half)).value;
    squares += residual * residual, ++count;
  }
  return std::sqrt(squares / count / (1 - 1 / static_cast<double>(width)));
}

Growth growth_of(std::span<const double> values) {
  const size_t n = values.size();
  if (n < kFewest) return {kNaN, kNaN};
  constexpr size_t kParts = 10;
  const std::span<const double> last = values.subspan(n / 2);
  std::vector<double> x, y;
  for (size_t p = 0; p < kParts; ++p) {
    const size_t begin = last.size() * p / kParts, end = last.size() * (p + 1) / kParts;
    if (begin == end) continue;
    std::vector<double> logs;
    for (size_t i = begin; i < end; ++i) logs.push_back(std::log(last[i]));
    x.push_back(static_cast<double>(begin + end - 1) / 2);
    y.push_back(finite_median(std::move(logs)));
  }
  return {n < kFewestForSlope ? kNaN : 1000 * fit_line(x, y, 0).slope,
          finite_median(part(values, 0.9, 1)) / finite_median(part(values, 0.45, 0.55))};
}

std::optional<size_t> divergence(std::span<const double> losses, std::span<const double> norms) {
  constexpr double kRise = 0.5;
  size_t finite = 0;
  while (finite < losses.size() && std::isfinite(losses[finite]) && std::isfinite(norms[finite])) ++finite;
  const std::vector<double> curve = smooth(losses.first(finite));
  const size_t stretch = std::max<size_t>(50, losses.size() / 20);
  double least = std::numeric_limits<double>::infinity();
  size_t above = 0;  // values in a row
  for (size_t i = 0; i < finite; ++i) {
    above = curve[i] > least + kRise ? above + 1 : 0;
    if (above >= stretch) return i + 1 - stretch;
    least = std::min(least, curve[i]);
  }
  // A stretch that ends in a value that is not finite is the beginning of that divergence.
  if (finite < losses.size()) return finite - above;
  return std::nullopt;
}

RunCurve read_curve(const std::filesystem::path& metrics) {
  const RunCurves all = read_curves(metrics);
  RunCurve out;
  const Curve& norms = all.curve("grad_norm");  // a step that was skipped unseen has none
  const std::vector<double> skipped = all.curve("skipped").values_at(norms.step);
  for (size_t i = 0; i < norms.size(); ++i)
    if (!(skipped[i] > 0)) out.step.push_back(norms.step[i]);
  for (size_t i = 0, k = 0; i < all.step.size() && k < out.step.size(); ++i)
    if (all.step[i] == out.step[k]) out.tokens.push_back(all.tokens[i]), ++k;
  const auto values = [&](const char* key) { return all.curve(key).values_at(out.step); };
  out.loss = values("loss"), out.grad_norm = values("grad_norm");
  out.tokens_per_s = values("tokens_per_s"), out.step_s = values("step_s");
  out.comm_s = values("comm_s"), out.comm_wait_s = values("comm_wait_s");
  for (const double drift : all.curve("monitors/drift").value)
    if (std::isfinite(drift)) out.drift.push_back(drift);
  for (const double loss : all.curve("val_loss").value)
    if (std::isfinite(loss)) out.val_loss = loss;
  if (const auto list = all.lists.find("unchanged"); list != all.lists.end()) {
    const Curve means = list_means(list->second);
    out.unchanged = means.value, out.unchanged_step = means.step;
  }
  return out;
}

}  // namespace hlat
