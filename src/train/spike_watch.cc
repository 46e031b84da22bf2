#include "train/spike_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/median.h"

namespace hlat {

namespace {

constexpr size_t kNorms = 20;                                       // HLAT's window
constexpr int64_t kFewestLosses = 16;                               // that a median is taken of
constexpr double kSmallestShare = 0.002, kSmallestSpread = 0.0001;  // of the median; nats

double spread_of(const std::vector<double>& values, double median) {
  if (values.empty()) return 0;
  return std::max({median_deviation(values, median), kSmallestShare * std::abs(median), kSmallestSpread});
}

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void keep_last(std::vector<double>& values, size_t count) {
  if (values.size() > count) values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(count));
}

}  // namespace

SpikeWatch::SpikeWatch(const LossConfig& config, SpikeHistory& history) : config_(config), history_(history) { cut(); }

void SpikeWatch::cut() {
  keep_last(history_.losses, static_cast<size_t>(config_.window));
  keep_last(history_.norms, kNorms);
}

SpikeFinding SpikeWatch::judge(double loss, double grad_norm) const {
  SpikeFinding found;
  found.median = upper_median(history_.losses);
  found.spread = spread_of(history_.losses, found.median);
  found.norm_mean = mean_of(history_.norms);
  const auto losses = static_cast<int64_t>(history_.losses.size());
  if (config_.rule == "robust" && losses >= std::min(kFewestLosses, config_.window) &&
      loss > found.median + config_.factor * found.spread) {
    found.spike = true;
    found.words = fmt::format("the loss {:.4f} lies {:.1f} spreads of {:.4f} above {:.4f}, the median of the last {} steps", loss,
                              (loss - found.median) / found.spread, found.spread, found.median, losses);
  }
  if (config_.rule == "hlat" && history_.norms.size() == kNorms && grad_norm > found.norm_mean + config_.norm_rise) {
    found.spike = true;
    found.words = fmt::format("the gradient norm {:.4f} is more than {} above {:.4f}, its mean over the last {} steps; the loss is {:.4f}",
                              grad_norm, config_.norm_rise, found.norm_mean, kNorms, loss);
  }
  return found;
}

void SpikeWatch::add(double loss, double grad_norm) {
  if (!std::isfinite(loss) || !std::isfinite(grad_norm)) return;
  history_.losses.push_back(loss);
  history_.norms.push_back(grad_norm);
  cut();
}

}  // namespace hlat
