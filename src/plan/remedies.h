// What to change when a plan does not fit: keys of the config, and layouts with more ranks. Each is tried by a dry run; what would not
// take less memory is not named.
#pragma once

#include <string>
#include <vector>

#include "plan/dry_run.h"
#include "plan/fit.h"

namespace hlat {

struct Remedy {
  std::string change;  // as a user would write it: "train.recompute=full"
  int64_t ranks = 0;   // of the whole run with this change
  size_t bytes = 0;    // of the fullest rank then
  bool fits = false;
};

// plan: the one that does not fit. Layouts assume that every new rank may take as much as this one.
std::vector<Remedy> remedies(const Config& config, const RankPlan& plan, const Fit& fit, const PlanTarget& target);

}  // namespace hlat
