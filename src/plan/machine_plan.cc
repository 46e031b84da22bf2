#include "plan/machine_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/null/gpu_scratch_ops.h"
#include "base/error.h"
#include "ops/gpu_scratch.h"
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

// What drivers and libraries take is not for the regions, where the file knows it.
Fit MachinePlan::fit(int64_t ranks) const {
  const double memory = machine_.need(machine_.memory), libraries = machine_.context.value.value_or(0) + machine_.nccl.value.value_or(0);
  if (libraries >= memory)
    fail<UsageError>("{}: libraries.context and libraries.nccl take {} together, and memory is {}", machine_.file,
                     quantity_text(libraries, Unit::bytes), quantity_text(memory, Unit::bytes));
  Fit fit{.device = machine_.name, .available = memory - libraries};
  const int64_t local = machine_.ranks_per_node > 0 ? std::min<int64_t>(ranks, machine_.ranks_per_node) : ranks;
  if (machine_.host_memory.known()) {
    const double share = *machine_.host_memory.value / static_cast<double>(std::max<int64_t>(local, 1));
    if (machine_.cores > 0)
      fit.available = share;
    else
      fit.host_available = share;
  }
  fit.on_host = machine_.cores > 0;
  return fit;
}

std::unique_ptr<StepClock> MachinePlan::clock(const Config& config) const {
  return std::make_unique<MachineClock>(machine_, layout_of(config));
}

// Ranks that share the cores of hosts have their peak together.
std::optional<double> MachinePlan::peak_flops(const Config& config) const {
  const Precision precision = precision_of(config);
  const Figure& peak = precision.fp8 && machine_.multiplies_fp8() ? machine_.peak_fp8 : machine_.peak(precision.compute);
  if (!peak.known() || machine_.cores == 0) return peak.value;
  const int64_t ranks = config.parallel.ranks(), hosts = nodes_of(ranks);
  return *peak.value * static_cast<double>(machine_.cores * hosts) / static_cast<double>(machine_.threads * std::max<int64_t>(ranks, 1));
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
  std::vector<std::string> lines = times.estimates({&first, &last});
  if (scratch_) lines.push_back(fmt::format("scratch of cuDNN and of the sort of token ids is as recorded on {}", kRecordedOn));
  const bool several = shape.ranks() > 1;
  for (const Figure* f : {&machine_.context, several ? &machine_.nccl : nullptr})
    if (f != nullptr && !f->known() && machine_.cores == 0)
      lines.push_back(fmt::format("{} is empty and no part of the memory: {}", f->key, f->meaning));
  if (several && machine_.links.measured.empty() && machine_.cores == 0)
    lines.push_back(fmt::format("links are figures, not measurements: {}", machine_.links.node.bytes_per_s.source));
  return lines;
}

SearchTarget MachinePlan::search_target(int64_t ranks, const std::vector<PrecisionKind>& precisions, int threads) const {
  SearchTarget t;
  t.plan = target_;
  t.fit = fit(ranks);
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
