// A plan with its time: the dry runs of all stages, traced and played against a machine's clock.
//
// A step of many micro-batches repeats itself: past the start of the pipeline every further group of pp micro-batches adds the same. So
// only two short steps are played, and the rest is their difference, many times over; the tests hold it against the whole step.
#pragma once

#include "plan/dry_run.h"
#include "plan/simulate.h"

namespace hlat {

struct TimedPlan {
  std::vector<RankPlan> stages;  // of a step with `played` micro-batches: memory is that of the whole step
  StepTime time;                 // of the whole step
  int64_t micros = 0;            // micro-batches of the step on each replica
  int64_t played = 0;
  int64_t tokens = 0;  // of the step, over all ranks
  double flops_per_token = 0;
  int ranks = 1;

  double tokens_per_s() const { return static_cast<double>(tokens) / time.seconds; }
  double mfu(double peak_flops) const { return tokens_per_s() * flops_per_token / (peak_flops * ranks); }  // peak: of one rank
};

enum class Play { shortened, whole };

// parallel.dp must be known.
TimedPlan time_plan(const Config& config, const PlanTarget& target, const StepClock& clock, Play play = Play::shortened,
                    bool spans = false);

// The config with fewer micro-batches whose dry run has the memory of the whole step's; its number of them. The same where there are few.
Config shortened(const Config& config, int64_t groups);

}  // namespace hlat
