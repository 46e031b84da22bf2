#include "plan/fault_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace hlat {

namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

// x / (exp(x) - 1), which is 1 at 0.
double over_expm1(double x) { return x == 0 ? 1 : x == kEndless ? 0 : x / std::expm1(x); }

// The root in [low, high] of what rises through 0 there.
template <class Rising>
double root_between(double low, double high, const Rising& f) {
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (f(middle) < 0 ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

// What depends on the interval in the logarithm of the goodput, which itself may be too small for a double.
double log_of_interval(double interval, double stall, double rate) {
  const double x = rate * (interval + stall);
  return std::log(interval) - x - std::log(-std::expm1(-x));
}

double expected_share(const FaultAsk& ask, const SeenShare& seen) {
  return seen.interval_s ? fault_shares(ask, *seen.interval_s).useful : fault_shares(ask, kEndless).up();
}

}  // namespace

double FaultAsk::failures_per_s() const { return static_cast<double>(nodes) / (node_mtbf_h * 3600); }

void validate(const FaultAsk& ask) {
  if (ask.nodes < 1) fail<UsageError>("nodes = {}: must be at least 1", ask.nodes);
  if (!(ask.node_mtbf_h > 0)) fail<UsageError>("node MTBF = {} hours: must be above 0", ask.node_mtbf_h);
  if (!(ask.step_s > 0) || ask.step_s == kEndless) fail<UsageError>("step time = {} s: must be above 0 and finite", ask.step_s);
  const std::array<std::pair<std::string_view, double>, 4> times{
      {{"detection", ask.detection_s}, {"restart", ask.restart_s}, {"save stall", ask.save_stall_s}, {"save commit", ask.commit_s}}};
  for (const auto& [name, seconds] : times)
    if (!(seconds >= 0) || seconds == kEndless) fail<UsageError>("{} = {} s: must be 0 or more, and finite", name, seconds);
}

FaultShares fault_shares(const FaultAsk& ask, double interval_s) {
  validate(ask);
  HLAT_CHECK(interval_s > 0, "an interval of {} s", interval_s);
  const double rate = ask.failures_per_s();
  const double found = 1 / (1 + rate * ask.detection_s), started = std::exp(-rate * ask.restart_s);
  const bool saves = interval_s != kEndless;
  const double window = interval_s + (saves ? ask.save_stall_s : 0);
  // 0 * infinity is no number: a job that neither fails nor saves repeats nothing.
  const double kept = rate == 0 ? 1 : over_expm1(rate * window) * std::exp(-rate * ask.commit_s);
  const double up = found * started;
  FaultShares s;
  s.useful = up * kept * (saves ? interval_s / window : 1);
  s.saves = saves ? up * kept * (ask.save_stall_s / window) : 0;
  s.repeated = up * (1 - kept);
  s.detection = 1 - found;
  s.restart = found * (1 - started);
  s.failures_per_day = rate * found * 86400;
  return s;
}

double interval_seconds(const FaultAsk& ask, SaveEvery every) { return every ? static_cast<double>(*every) * ask.step_s : kEndless; }

double best_interval_s(double failures_per_s, double save_stall_s) {
  HLAT_CHECK(failures_per_s >= 0 && save_stall_s >= 0, "{} failures a second, a stall of {} s", failures_per_s, save_stall_s);
  if (failures_per_s == 0) return kEndless;
  const double stall = failures_per_s * save_stall_s;
  // x = r i is between 0 and 1: 1 - exp(-(x + stall)) is.
  return root_between(0.0, 1.0, [&](double x) { return x + std::expm1(-(x + stall)); }) / failures_per_s;
}

SaveEvery best_save_every(const FaultAsk& ask) {
  validate(ask);
  const double rate = ask.failures_per_s();
  if (rate == 0) return std::nullopt;
  constexpr double kMost = 1e15;
  const double steps = std::min(kMost, std::floor(best_interval_s(rate, ask.save_stall_s) / ask.step_s));
  const double least = std::max(1.0, std::ceil(ask.commit_s / ask.step_s));
  const double low = std::max(least, steps), high = std::max(least, steps + 1);
  const auto value = [&](double n) { return log_of_interval(n * ask.step_s, ask.save_stall_s, rate); };
  return static_cast<int64_t>(value(low) >= value(high) ? low : high);
}

std::optional<double> explaining_mtbf_h(const FaultAsk& ask, const SeenShare& seen) {
  HLAT_CHECK(seen.share > 0 && seen.share < 1, "a share of {}", seen.share);
  // What is missing at a rate of the job's failures; it rises with the rate.
  const auto missing = [&](double rate) {
    FaultAsk at = ask;
    at.node_mtbf_h = static_cast<double>(ask.nodes) / (rate * 3600);
    return seen.share - expected_share(at, seen);
  };
  if (missing(0) >= 0) return std::nullopt;  // saves alone take more
  const double away = ask.detection_s + ask.restart_s + (seen.interval_s ? *seen.interval_s : 0);
  if (away <= 0) return std::nullopt;
  double high = 1 / away;
  while (missing(high) < 0) high *= 2;
  return static_cast<double>(ask.nodes) / (root_between(0.0, high, missing) * 3600);
}

std::optional<double> explaining_detection_s(const FaultAsk& ask, const SeenShare& seen) {
  HLAT_CHECK(seen.share > 0 && seen.share < 1, "a share of {}", seen.share);
  FaultAsk at_once = ask;
  at_once.detection_s = 0;
  const double seconds = (expected_share(at_once, seen) / seen.share - 1) / ask.failures_per_s();
  if (!(seconds >= 0) || seconds == kEndless) return std::nullopt;
  return seconds;
}

}  // namespace hlat
