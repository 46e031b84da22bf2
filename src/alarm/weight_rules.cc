// Rules about weights and moments: copies that differ, updates that rounding takes away, moments outside what they can be.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "alarm/robust.h"
#include "alarm/rules.h"
#include "base/median.h"
#include "config/precision_row.h"

namespace hlat {

namespace {

// Weights that stay as they are, in half of the parts or more, with a learning rate that is no less than a twentieth of its largest. Pure
// bf16 loses a quarter at a full rate; masters lose nothing.
constexpr double kLostShare = 0.15, kSmallRate = 0.05;
constexpr size_t kLostLooks = 3;

constexpr double kLargestMoment = 1e37;  // a square of f32 or bf16 overflows at 3.4e38
constexpr double kMomentMargin = 10;     // for rounding of moments

// Whether updates go straight to weights that are rounded to nearest, and nothing keeps what rounding takes. Under stochastic rounding most
// weights stay too, and nothing is lost on average.
bool loses_what_rounds(const Config& c) {
  const PrecisionConfig row = precision_row(c);
  return row.masters == "none" && row.round_weights == "nearest";
}

// m and v are weighted sums of the same g and g^2, so that |m| <= C sqrt(v) (Cauchy and Schwarz). none: the sum has no bound.
std::optional<double> largest_ratio(const OptimConfig& o) {
  const double rest = 1 - o.beta1 * o.beta1 / o.beta2;
  if (!(rest > 0) || !(o.beta2 < 1)) return {};
  return (1 - o.beta1) / std::sqrt((1 - o.beta2) * rest);
}

Finding moment_finding(const AlarmView& view, double value, double limit, std::string words) {
  return {.value = value, .limit = limit, .since = view.metrics.step, .evidence = std::move(words)};
}

std::optional<Finding> wrong_moments(const AlarmView& view, const Monitors& own) {
  const OptimConfig& o = view.config.optim;
  if (!std::isfinite(own.moment1_max) || !std::isfinite(own.moment2_max) || own.moment2_max > kLargestMoment)
    return moment_finding(view, own.moment2_max, kLargestMoment,
                          fmt::format("the largest second moment is {:.3g} and the largest first one {:.3g}: they overflow",
                                      own.moment2_max, own.moment1_max));
  if (own.moment2_max <= 0) return {};
  const double root = std::sqrt(own.moment2_max);
  if (root < o.eps)
    return moment_finding(
        view, root, o.eps,
        fmt::format("the root of the largest second moment is {:.3g}, below optim.eps {:.3g}: updates are damped to nothing", root, o.eps));
  const std::optional<double> ratio = largest_ratio(o);
  if (ratio && own.moment1_max > kMomentMargin * *ratio * root)
    return moment_finding(
        view, own.moment1_max, kMomentMargin * *ratio * root,
        fmt::format("the largest first moment {:.3g} exceeds {:.2f} times the root of the largest second one, {:.3g}: they are "
                    "not moments of the same gradients",
                    own.moment1_max, *ratio, root));
  return {};
}

}  // namespace

Look look_at_drift(const AlarmView& view, AlarmMemory&) {
  const Monitors* own = view.monitors();
  if (own == nullptr || !own->drift) return {};
  if (*own->drift <= 0) return {.looked = true};
  return {.looked = true,
          .found = Finding{.value = *own->drift,
                           .limit = 0,
                           .since = view.metrics.step,
                           .evidence = fmt::format("weights that ranks hold alike differ by up to {:.3g}", *own->drift)}};
}

Look look_at_lost_updates(const AlarmView& view, AlarmMemory& memory) {
  const Monitors* own = view.monitors();
  if (own == nullptr || own->unchanged.empty() || !view.settled || !loses_what_rounds(view.config)) return {};
  if (view.metrics.lr < kSmallRate * view.config.optim.lr) return {};
  const std::vector<double>& shares = keep(memory, "unchanged", upper_median(own->unchanged), kLostLooks);
  const double least = *std::min_element(shares.begin(), shares.end());
  if (shares.size() < kLostLooks || !(least > kLostShare)) return {.looked = true};
  return {.looked = true,
          .found = Finding{
              .value = shares.back(),
              .limit = kLostShare,
              .since = std::max<int64_t>(1, view.metrics.step - static_cast<int64_t>(kLostLooks - 1) * view.config.monitor.every),
              .evidence = fmt::format("an update leaves {:.1f}% of the weights as they were (median of the parts, {} measurements), at "
                                      "learning rate {:.3g}: rounding to nearest takes it away, and there are no masters",
                                      100 * shares.back(), kLostLooks, view.metrics.lr)}};
}

Look look_at_moments(const AlarmView& view, AlarmMemory&) {
  const Monitors* own = view.monitors();
  if (own == nullptr || !view.settled) return {};
  return {.looked = true, .found = wrong_moments(view, *own)};
}

}  // namespace hlat
