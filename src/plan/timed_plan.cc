#include "plan/timed_plan.h"

#include <algorithm>

#include "base/error.h"

namespace hlat {

namespace {

constexpr int64_t kGroups = 3;  // of pp micro-batches: the first fill the pipeline

int64_t micros_per_step(const Config& c) { return c.train.global_batch / (c.train.micro_batch * c.parallel.dp); }

struct PlayedStep {
  std::vector<RankPlan> stages;
  StepTime time;
};

PlayedStep play_step(const Config& config, const PlanTarget& target, const StepClock& clock, bool spans) {
  const MeshShape shape = mesh_shape(config.parallel);
  PlayedStep out;
  std::vector<StepTrace> traces(static_cast<size_t>(shape.pp));
  std::vector<const StepTrace*> lists;
  for (int s = 0; s < shape.pp; ++s) {
    StepTrace& trace = traces[static_cast<size_t>(s)];
    out.stages.push_back(dry_run(config, target, rank_of({.pp = s}, shape), &trace));
    lists.push_back(&trace);
  }
  out.time = simulate(lists, shape, clock, spans);
  return out;
}

// to + times * (to - from), part by part.
void extend(double& to, double from, double times) { to += times * (to - from); }

void extend(StepTime& to, const StepTime& from, double times) {
  extend(to.seconds, from.seconds, times);
  for (size_t s = 0; s < to.stages.size(); ++s) {
    StageTime& a = to.stages[s];
    const StageTime& b = from.stages[s];
    for (size_t k = 0; k < a.compute.size(); ++k) extend(a.compute[k], b.compute[k], times);
    for (size_t k = 0; k < a.exposed.size(); ++k) extend(a.exposed[k], b.exposed[k], times);
    extend(a.bubble, b.bubble, times);
    extend(a.slowed, b.slowed, times);
    extend(a.queued, b.queued, times);
    extend(a.end, b.end, times);
  }
}

}  // namespace

Config shortened(const Config& config, int64_t groups) {
  const int64_t micros = micros_per_step(config), group = std::max<int64_t>(config.parallel.pp, 1);
  Config c = config;
  const int64_t fewer = std::min(micros, groups * group + micros % group);
  c.train.global_batch = fewer * c.train.micro_batch * c.parallel.dp;
  return c;
}

TimedPlan time_plan(const Config& config, const PlanTarget& target, const StepClock& clock, Play play, bool spans) {
  HLAT_CHECK(target.use == ParamUse::training, "only training steps are timed");
  TimedPlan out;
  out.micros = micros_per_step(config);
  const Config last = play == Play::whole ? config : shortened(config, kGroups);
  out.played = micros_per_step(last);
  PlayedStep step = play_step(last, target, clock, spans);
  if (out.played < out.micros) {
    const Config first = shortened(config, kGroups - 1);
    const int64_t fewer = micros_per_step(first);
    const PlayedStep before = play_step(first, target, clock, false);
    extend(step.time, before.time, static_cast<double>(out.micros - out.played) / static_cast<double>(out.played - fewer));
  }
  out.stages = std::move(step.stages);
  out.time = std::move(step.time);
  out.tokens = config.train.global_batch * config.train.seq_len;
  out.flops_per_token = out.stages.front().flops_per_token;
  out.ranks = mesh_shape(config.parallel).ranks();
  return out;
}

}  // namespace hlat
