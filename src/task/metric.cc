#include "task/metric.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"

namespace hlat {
namespace {

// sum of values / sum of weights, with the standard error of that ratio; with weights of 1 it is the mean with its own.
Estimate ratio(std::span<const MetricValue> values) {
  double sum = 0, weight = 0;
  for (const MetricValue& v : values) {
    sum += v.value;
    weight += v.weight;
  }
  const auto n = static_cast<double>(values.size());
  Estimate out = {.value = sum / weight, .error = std::numeric_limits<double>::quiet_NaN(), .count = static_cast<int64_t>(values.size())};
  if (values.size() < 2) return out;
  double squares = 0;
  for (const MetricValue& v : values) squares += (v.value - out.value * v.weight) * (v.value - out.value * v.weight);
  out.error = std::sqrt(squares / (n - 1) * n) / weight;
  return out;
}

}  // namespace

Estimate aggregate(Aggregation aggregation, std::span<const MetricValue> values) {
  HLAT_CHECK(!values.empty(), "a metric of no examples");
  Estimate out = ratio(values);
  switch (aggregation) {
    case Aggregation::mean: break;
    case Aggregation::perplexity:
    case Aggregation::weighted_perplexity:
      out.value = std::exp(-out.value);
      out.error *= out.value;  // d exp(-x) = exp(-x) dx
      break;
    case Aggregation::bits_per_weight:
      out.value /= -std::numbers::ln2;
      out.error /= std::numbers::ln2;
      break;
  }
  return out;
}

Estimate pooled(std::span<const Estimate> subtasks) {
  HLAT_CHECK(!subtasks.empty(), "a task of no subtasks");
  Estimate out;
  double squares = 0;
  for (const Estimate& s : subtasks) {
    const auto n = static_cast<double>(s.count);
    out.count += s.count;
    out.value += s.value * n;
    if (s.count > 1) squares += s.error * s.error * n * (n - 1);  // the subtask's variance times n - 1
  }
  const auto n = static_cast<double>(out.count);
  const double freedom = n - static_cast<double>(subtasks.size());
  out.value /= n;
  out.error = freedom > 0 ? std::sqrt(squares / freedom / n) : std::numeric_limits<double>::quiet_NaN();
  return out;
}

double pass_at_k(int64_t n, int64_t c, int64_t k) {
  HLAT_CHECK(k >= 1 && k <= n && c >= 0 && c <= n, "pass@{} of {} samples, {} of them right", k, n, c);
  if (n - c < k) return 1;
  double none = 1;  // the chance that none of the k passes
  for (int64_t i = n - c + 1; i <= n; ++i) none *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - none;
}

}  // namespace hlat
