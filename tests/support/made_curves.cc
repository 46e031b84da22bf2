#include "support/made_curves.h"

#include <fmt/format.h>

#include <cmath>

#include "base/rng.h"

namespace hlat {

double alarm_noise(int64_t step, uint64_t stream) {
  return static_cast<double>(hash_name(fmt::format("{} {}", step, stream)) >> 11) * 0x1p-52 - 1;
}

Config watched() {
  Config c;
  c.optim.warmup = 10;
  c.optim.lr = 1e-3;
  c.train.steps = 100000;
  c.parallel.dp = 1;
  return c;
}

StepMetrics healthy_step(int64_t step) {
  const auto s = static_cast<double>(step);
  StepMetrics m{.step = step, .tokens = step * 1024, .loss = 2 + 4 * std::pow(s, -0.3) * (1 + 0.02 * alarm_noise(step, 1))};
  m.grad_norm = (0.2 + std::pow(s, -0.4)) * (1 + 0.2 * alarm_noise(step, 2));
  m.lr = 1e-3;
  if (step % 10 != 0) return m;
  Monitors& own = m.monitors.emplace();
  for (int part = 0; part < 6; ++part) {
    own.grad_norm.push_back(0.1 * (1 + part) * (1 + 0.3 * alarm_noise(step, 10 + static_cast<uint64_t>(part))));
    own.weight_norm.push_back(10);
    own.update_ratio.push_back(1e-3);
    own.unchanged.push_back(0.01);
  }
  own.max_activation = {1, 5, 20, 40, 300};
  own.max_lse = {5, 8, 12, 20};
  own.moment1_max = 0.1, own.moment2_min = 1e-39, own.moment2_max = 0.02;
  for (int part = 0; part < 16; ++part)
    own.position_loss.push_back(m.loss + (part == 0 ? 0.3 : 0) + 0.2 * alarm_noise(step, 30 + static_cast<uint64_t>(part)));
  own.source_loss = {{"code", 0.5 * m.loss}, {"web", m.loss}, {"books", 1.1 * m.loss}};
  own.repetition = 0.1, own.copy_baseline = 5, own.repeated_rows = 0, own.update_error = 1e-4;
  own.probe_loss = m.loss + 0.1, own.leak = 0, own.drift = 0;
  return m;
}

void monitored(StepMetrics& m, const std::function<void(Monitors&)>& change) {
  if (m.monitors) change(*m.monitors);
}

std::vector<Alarm> alarms_of(const Config& config, int64_t last, int64_t from, const Change& change) {
  AlarmState state;
  Alarms alarms(config, state);
  std::vector<Alarm> found;
  for (int64_t step = 1; step <= last; ++step) {
    StepMetrics m = healthy_step(step);
    if (step >= from) change(m);
    for (Alarm& alarm : alarms.add(m)) found.push_back(std::move(alarm));
  }
  return found;
}

std::vector<int64_t> told_in(const Config& config, int64_t last, const Change& change) {
  std::vector<int64_t> told;
  for (const Alarm& alarm : alarms_of(config, last, 1, change)) told.push_back(alarm.step);
  return told;
}

}  // namespace hlat
