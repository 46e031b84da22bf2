// Rules against a trend: the gradient norm and the loss, as medians over blocks of steps, on a short and a long scale of time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "alarm/robust.h"
#include "alarm/rules.h"
#include "base/median.h"

namespace hlat {

namespace {

constexpr size_t kTrendBlocks = 32;   // that are kept
constexpr size_t kFewestBlocks = 10;  // before the latest ones

// A scale of time. On the short one noise is larger, so more is asked of the loss.
struct TrendScale {
  const char* name;
  size_t steps;       // of a block
  double loss_share;  // of the loss that a rise exceeds
};
constexpr std::array<TrendScale, 2> kScales = {{{"short", 8, 0.04}, {"long", 64, 0.02}}};

// A norm that has doubled against its trend and stays there, or has grown fourfold over the window, while the loss has not fallen by 2 %
// since; a norm eight times as large needs no second sign. Healthy norms fall after warm-up, and grow by half or less, over most of a run,
// as the learning rate falls (HLAT-7B: from 0.044 to 0.098 in 400,000 steps).
constexpr size_t kLatestNorms = 4;
constexpr double kNormJump = 2, kNormTrend = 4, kNormAlone = 8;
constexpr double kTrendSpreads = 5;  // a level lies so many spreads of earlier blocks off
constexpr double kSlowFall = 0.02;   // of the loss

// A loss that for three blocks lies above its extrapolation by five spreads and a share of itself. The reference is never below the lowest
// block so far: a loss that has stopped falling is no rise.
constexpr size_t kLatestLosses = 3;

std::span<const double> head(const std::vector<double>& values, size_t without) { return std::span(values).first(values.size() - without); }
std::span<const double> tail(const std::vector<double>& values, size_t count) { return std::span(values).last(count); }
double middle(std::span<const double> values) { return upper_median({values.begin(), values.end()}); }

// The share by which the loss has fallen from as many blocks before the latest ones to those.
double fall_of(const std::vector<double>& losses) {
  const double now = middle(tail(losses, kLatestNorms));
  const double before = middle(tail(losses, 2 * kLatestNorms).first(kLatestNorms));
  return before > 0 ? (before - now) / before : 0;
}

std::optional<Finding> growth_in(const BlockHistory& norms, const BlockHistory& losses, const TrendScale& scale) {
  if (norms.medians->size() < kFewestBlocks + kLatestNorms) return {};
  const auto x = head(*norms.ends, kLatestNorms), y = head(*norms.medians, kLatestNorms);
  const auto latest = tail(*norms.medians, kLatestNorms), latest_at = tail(*norms.ends, kLatestNorms);
  const RobustLine line = line_through(x, y);
  const double level = middle(y);
  double jump = INFINITY;  // of the lowest of the latest blocks, in natural logarithms as all norms here
  for (size_t i = 0; i < latest.size(); ++i) jump = std::min(jump, latest[i] - std::max(level, line.at(latest_at[i])));
  const RobustLine whole = line_through(*norms.ends, *norms.medians);
  const double growth = whole.slope * (norms.ends->back() - norms.ends->front());
  const bool jumped = jump >= std::max(std::log(kNormJump), kTrendSpreads * line.spread);
  const bool climbs = growth >= std::max(std::log(kNormTrend), kTrendSpreads * whole.spread);
  const double rise = jumped ? jump : growth, fall = fall_of(*losses.medians);
  if ((!jumped && !climbs) || (fall > kSlowFall && rise < std::log(kNormAlone))) return {};
  const auto since = static_cast<int64_t>(jumped ? x.back() : norms.ends->front()) + 1;
  const double now = std::exp(middle(latest));
  return Finding{
      .value = now,
      .limit = now * std::exp(std::log(jumped ? kNormJump : kNormTrend) - rise),
      .since = since,
      .evidence = fmt::format(
          "the gradient norm {:.4g} (median of {} steps) is {:.1f} times {}, while the loss has {} by {:.1f}% against the {} steps before",
          now, kLatestNorms * scale.steps, std::exp(rise),
          jumped ? "its trend" : fmt::format("what it was {} steps before", static_cast<int64_t>(norms.ends->back() - norms.ends->front())),
          fall >= 0 ? "fallen" : "risen", 100 * std::abs(fall), kLatestNorms * scale.steps)};
}

std::optional<Finding> rise_in(const BlockHistory& losses, const TrendScale& scale) {
  if (losses.medians->size() < kFewestBlocks + kLatestLosses) return {};
  std::vector<double> at;
  for (const double step : *losses.ends) at.push_back(std::log(step));
  const auto y = head(*losses.medians, kLatestLosses), latest = tail(*losses.medians, kLatestLosses);
  RobustLine line = line_through(head(at, kLatestLosses), y);
  // A trend that rises is what is looked for, not what is to be expected.
  if (line.slope > 0) line.slope = 0, line.at_zero = middle(y);
  const double lowest = *std::min_element(y.begin(), y.end());
  double above = INFINITY, expected = 0;
  for (size_t i = 0; i < latest.size(); ++i) {
    const double reference = std::max(line.at(at[at.size() - latest.size() + i]), lowest);
    if (latest[i] - reference < above) above = latest[i] - reference, expected = reference;
  }
  const double margin = std::max(kTrendSpreads * line.spread, scale.loss_share * std::abs(expected));
  if (above < margin) return {};
  const auto steps = static_cast<int64_t>(kLatestLosses * scale.steps);
  return Finding{
      .value = expected + above,
      .limit = expected + margin,
      .since = static_cast<int64_t>((*losses.ends)[losses.ends->size() - kLatestLosses - 1]) + 1,
      .evidence = fmt::format("for {} steps the loss has been at {:.4f} or above; {:.4f} was to be expected from the {} steps before, and "
                              "{:.4f} was its lowest level there",
                              steps, expected + above, expected, y.size() * scale.steps, lowest)};
}

}  // namespace

Look look_at_grad_growth(const AlarmView& view, AlarmMemory& memory) {
  if (!view.settled || view.metrics.grad_norm <= 0) return {};
  Look look;
  for (const TrendScale& scale : kScales) {
    const auto step = static_cast<double>(view.metrics.step);
    const std::string name = scale.name;
    const BlockHistory losses = add_to_blocks(memory, name + ".loss", step, view.metrics.loss, scale.steps, kTrendBlocks);
    const BlockHistory norms = add_to_blocks(memory, name + ".norm", step, std::log(view.metrics.grad_norm), scale.steps, kTrendBlocks);
    look.looked |= norms.complete;
    if (norms.complete && !look.found) look.found = growth_in(norms, losses, scale);
  }
  return look;
}

Look look_at_loss_rise(const AlarmView& view, AlarmMemory& memory) {
  if (!view.settled) return {};
  Look look;
  for (const TrendScale& scale : kScales) {
    const BlockHistory losses =
        add_to_blocks(memory, scale.name, static_cast<double>(view.metrics.step), view.metrics.loss, scale.steps, kTrendBlocks);
    look.looked |= losses.complete;
    if (losses.complete && !look.found) look.found = rise_in(losses, scale);
  }
  return look;
}

}  // namespace hlat
