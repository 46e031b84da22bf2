// A config on a machine model: what fits, how long a step takes, what a search looks at. The glue between the machine's figures and the
// parts that plan, simulate and search; machine_costs.h has scaling and money.
#pragma once

#include <memory>
#include <optional>

#include "plan/machine.h"
#include "plan/search.h"

namespace hlat {

class MachinePlan {
 public:
  explicit MachinePlan(Machine machine);
  ~MachinePlan();

  const Machine& machine() const { return machine_; }
  // What plans are made for: memory of a rank, the scratch of its GPU, collectives of its own.
  const PlanTarget& target() const { return target_; }
  Fit fit(int64_t ranks) const;  // ranks of the run: they share the memory of their hosts
  std::unique_ptr<StepClock> clock(const Config& config) const;
  // Of a rank, for MFU; nothing: the file has none. Where ranks share cores, their share of them. parallel.dp must be known.
  std::optional<double> peak_flops(const Config& config) const;

  // parallel.dp must be known.
  TimedPlan time(const Config& config, Play play = Play::shortened, bool spans = false) const;
  // What of these times is no measurement, in words.
  std::vector<std::string> estimates(const Config& config) const;

  SearchTarget search_target(int64_t ranks, const std::vector<PrecisionKind>& precisions, int threads) const;

  int64_t ranks_of(int64_t nodes) const;  // UsageError where the machine has no nodes of a given size
  int64_t nodes_of(int64_t ranks) const;

 private:
  Machine machine_;
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
  PlanTarget target_;
};

}  // namespace hlat
