#include "plan/machine_plan.h"

#include <fmt/format.h>

#include "backend/null/gpu_scratch_ops.h"
#include "base/error.h"
#include "plan/machine_clock.h"

namespace hlat {

// The ops that say how much scratch a GPU takes, and the region that they measure in.
struct MachinePlan::Scratch {
  Region measuring;
  GpuScratchOps ops;
  explicit Scratch(const Machine& m) : ops(measuring, gpu_of_capability(m.device, m.capability)) {}
};

MachinePlan::MachinePlan(Machine machine) : machine_(std::move(machine)) {
  if (machine_.capability > 0) {
    scratch_ = std::make_unique<Scratch>(machine_);
    target_.scratch_model = &scratch_->ops;
  }
  target_.transport = machine_.cores > 0 ? Transport::host : Transport::nccl;
}

MachinePlan::~MachinePlan() = default;

// What drivers and libraries take is a line of its own where the file knows it; else it is not part of the sum.
Fit MachinePlan::fit() const {
  const double libraries = machine_.context.value.value_or(0) + machine_.nccl.value.value_or(0);
  return {.device = machine_.name, .available = machine_.need(machine_.memory) - libraries};
}

std::unique_ptr<StepClock> MachinePlan::clock(const Config& config) const {
  return std::make_unique<MachineClock>(machine_, layout_of(config));
}

std::optional<double> MachinePlan::peak_flops(const Config& config) const {
  return machine_.peak(precision_of(config.train.precision).compute).value;
}

TimedPlan MachinePlan::time(const Config& config, Play play, bool spans) const {
  return time_plan(config, target_, *clock(config), play, spans);
}

std::vector<std::string> MachinePlan::estimates(const Config& config) const {
  const Config few = shortened(config, 1);
  const MeshShape shape = mesh_shape(few.parallel);
  StepTrace first, last;
  dry_run(few, target_, 0, &first);
  dry_run(few, target_, rank_of({.pp = shape.pp - 1}, shape), &last);
  const MachineClock times(machine_, layout_of(config));
  return times.estimates({&first, &last});
}

SearchTarget MachinePlan::search_target(int64_t ranks, const std::vector<PrecisionKind>& precisions, int threads) const {
  SearchTarget t;
  t.plan = target_;
  t.fit = fit();
  t.clock = [this](const Config& c) { return clock(c); };
  t.limits.ranks = ranks;
  t.limits.precisions = precisions;
  if (machine_.cores == 0) t.limits.most_tp = std::max<int64_t>(t.limits.most_tp, machine_.ranks_per_node);
  t.threads = threads;
  return t;
}

int64_t MachinePlan::ranks_of(int64_t nodes) const {
  if (machine_.ranks_per_node == 0)
    fail<UsageError>("--nodes: {} has no nodes of a given number of ranks (ranks_per_node of {}); give --ranks", machine_.name,
                     machine_.file);
  return nodes * machine_.ranks_per_node;
}

int64_t MachinePlan::nodes_of(int64_t ranks) const {
  return machine_.ranks_per_node == 0 ? 1 : (ranks + machine_.ranks_per_node - 1) / machine_.ranks_per_node;
}

}  // namespace hlat
