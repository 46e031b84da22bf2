#include "plan/fit.h"

#include <algorithm>

#include "data/dataset.h"

namespace hlat {

namespace {

// Resident memory of runs of small models less their regions was 60 to 95 MiB (Linux, GCC, CPU backend).
constexpr size_t kProcessBytes = size_t{96} << 20;

double still_to_come(const Config& config, const RankPlan& plan, double resident) {
  const HostLines lines = host_lines(config, plan);
  return static_cast<double>(lines.total()) - std::min(resident, static_cast<double>(lines.process));
}

}  // namespace

HostLines host_lines(const Config& config, const RankPlan& plan) {
  const bool reads = plan.use == ParamUse::training && reads_batches(plan.coord, plan.mesh);
  return {.communication = plan.host_bytes, .loader = reads ? loader_bytes(config) : 0, .process = kProcessBytes};
}

double Fit::needed(const Config& config, const RankPlan& plan) const {
  return static_cast<double>(plan.memory.total()) + (on_host ? still_to_come(config, plan, resident) : 0);
}

double Fit::host_needed(const Config& config, const RankPlan& plan) const { return on_host ? 0 : still_to_come(config, plan, resident); }

bool Fit::fits(const Config& config, const RankPlan& plan) const {
  return needed(config, plan) <= available && host_needed(config, plan) <= host_available;
}

}  // namespace hlat
