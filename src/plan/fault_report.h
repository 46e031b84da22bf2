// What faults cost a run, for people and for machines: goodput and losses at the interval of checkpoints that a config has, and at the
// best one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/cost.h"
#include "plan/fault_model.h"

namespace hlat {

struct FaultReport {
  FaultAsk ask;
  SaveEvery every = {};    // what the config says; nothing: no saves but the last
  double useful_days = 0;  // of the run, if nothing were lost; 0: not known
  NodePrice price = {};
};

// Dollars of all nodes in `days` of the run, by what they were lost to.
struct FaultDollars {
  CostFigure saves, repeated, detection, restart;
  CostFigure total() const;
};
FaultDollars fault_dollars(const FaultAsk& ask, const FaultShares& shares, const NodePrice& price, double days);

// Of a run of so many days at an interval. Without saves all of it is one interval.
FaultShares fault_shares_of(const FaultReport& report, SaveEvery every);

std::string fault_text(const FaultReport& report);
nlohmann::ordered_json fault_json(const FaultReport& report);

}  // namespace hlat
