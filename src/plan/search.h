// The best layout of a config on so many ranks of a machine: every split that the rules allow is planned by its exact dry run, what does
// not fit is left out, the rest is ranked by the simulated time of a step, and the best are improved one choice at a time until no
// neighbour is faster. Every neighbour of the winner is in the result, with the reason that it lost.
#pragma once

#include <functional>
#include <memory>

#include "plan/fit.h"
#include "plan/layout_space.h"
#include "plan/timed_plan.h"

namespace hlat {

struct SearchTarget {
  PlanTarget plan;
  Fit fit;  // memory of a rank
  std::function<std::unique_ptr<StepClock>(const Config&)> clock;
  SpaceLimits limits;
  int threads = 1;
  size_t shown = 10;  // layouts in the result
};

// A layout that was looked at.
struct ScoredLayout {
  Config config;
  bool fits = false;
  size_t bytes = 0;     // of the fullest rank
  double needed = 0;    // of the device, with what lies there besides the regions
  TimedPlan plan = {};  // of those that fit
  double seconds() const { return plan.time.seconds; }
};

struct RejectedLayout {
  std::string words;  // what differs from the winner: "tp 4"
  Config config;
  bool fits = false;
  double seconds = 0;  // of a step, where it fits
  std::string why;     // "needs 17.9 of 16.0 GB", "+4.1 %: 0.31 s more waiting for tp"
};

struct SearchResult {
  std::vector<ScoredLayout> best;  // fastest first; empty: nothing fits
  std::vector<RejectedLayout> neighbours;
  ScoredLayout smallest;     // what takes least memory, where nothing fits
  int64_t enough_ranks = 0;  // where nothing fits: so many of the same ranks would do; 0: none of those tried
  int64_t layouts = 0;       // that were looked at
  int64_t timed = 0;         // of these, simulated
  int64_t too_large = 0;     // that do not fit
  double seconds = 0;        // of the search
};

// UsageError where the ranks cannot be split at all, with the nearest number that can.
SearchResult search_layouts(const Config& config, const SearchTarget& target);

ScoredLayout score_layout(const Config& config, const SearchTarget& target);
std::string why_slower(const ScoredLayout& winner, const ScoredLayout& other);

}  // namespace hlat
