#include "alarm/alarms.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "config/print.h"
#include "config/run_length.h"

namespace hlat {

namespace {

constexpr int64_t kQuietSteps = 200, kQuietLooks = 10;
constexpr int64_t kFirstDistance = 1000, kDistanceGrowth = 4;

// What losses and norms of a run depend on; a layout is no part of it.
std::string setup_of(const Config& config) {
  Config c = config;
  c.run = {.seed = config.run.seed};
  c.parallel = {};
  c.checkpoint = {};
  c.eval = {};
  c.loss = {};
  c.monitor = {};
  c.launch = {};
  c.fault = {};
  c.device = {};
  const TrainConfig& t = config.train;
  c.train = {};
  c.train.seq_len = t.seq_len, c.train.global_batch = t.global_batch, c.train.precision = t.precision;
  if (c.optim.schedule_steps == 0) c.optim.schedule_steps = t.steps;
  c.data.workers = c.data.prefetch = c.data.validate_every = 0;
  c.data.cache_dir = {};
  return fmt::format("{:016x}", hash_name(to_yaml(c)));
}

bool is_settled(const Config& config, int64_t step) {
  const int64_t warmup = config.optim.warmup;
  return step > warmup + std::clamp<int64_t>(warmup / 2, 20, 500);
}

}  // namespace

Alarms::Alarms(const Config& config, AlarmState& state) : config_(config), state_(state) {
  std::vector<std::string> problems;
  rules_ = parse_alarms(config.loss.alarms, problems);
  HLAT_CHECK(problems.empty(), "loss.alarms: {}", problems.front());
  std::string setup = setup_of(config);
  if (state_.setup != setup) state_.memories.clear();
  state_.setup = std::move(setup);
}

bool Alarms::begins_stage(int64_t step) const {
  return std::any_of(config_.data.stages.begin(), config_.data.stages.end(),
                     [&](const DataStage& s) { return s.first_step(tokens_per_step(config_.train)) == step; });
}

bool Alarms::is_told(AlarmTold& told, int64_t step, const Look& look) {
  if (!look.found) {
    told.quiet += look.looked ? 1 : 0;
    return false;
  }
  const bool anew = told.times == 0 || (told.quiet >= kQuietLooks && step - told.seen_at >= kQuietSteps);
  told.seen_at = step;
  told.quiet = 0;
  if (!anew && step - told.told_at < told.distance) return false;
  told.distance = anew ? kFirstDistance : told.distance * kDistanceGrowth;
  told.told_at = step;
  ++told.times;
  return true;
}

std::vector<Alarm> Alarms::add(const StepMetrics& m, const std::string& spike) {
  if (begins_stage(m.step)) state_.memories.clear();
  if (!m.computed || !std::isfinite(m.loss) || !std::isfinite(m.grad_norm)) return {};
  const AlarmView view{.config = config_, .metrics = m, .spike = spike, .settled = is_settled(config_, m.step)};
  std::vector<Alarm> alarms;
  for (const AlarmRow& row : alarm_rows()) {
    if (!rules_.test(static_cast<size_t>(row.rule)) || (m.skipped && row.rule != AlarmRule::fp8_range)) continue;
    const std::string name(name_of(row.rule));
    const Look look = row.look(view, state_.memories[name]);
    AlarmTold& told = state_.told[name];
    if (!is_told(told, m.step, look)) continue;
    alarms.push_back({.rule = row.rule,
                      .step = m.step,
                      .since = look.found->since,
                      .value = look.found->value,
                      .limit = look.found->limit,
                      .evidence = look.found->evidence,
                      .advice = std::string(row.advice)});
  }
  return alarms;
}

}  // namespace hlat
