#include "plan/fit.h"

#include <algorithm>

#include "checkpoint/staging.h"
#include "data/dataset.h"

namespace hlat {

namespace {

// Resident memory of runs of small models less their regions was 60 to 95 MiB (Linux, GCC, CPU backend).
constexpr size_t kProcessBytes = size_t{96} << 20;

}  // namespace

HostLines host_lines(const Config& config, const RankPlan& plan, double available) {
  const bool reads = plan.use == ParamUse::training && reads_batches(plan.coord, plan.mesh);
  HostLines lines{.communication = plan.host_bytes, .loader = reads ? loader_bytes(config) : 0, .process = kProcessBytes};
  lines.staging = staging_bytes(config.checkpoint, plan.saved_bytes, available - static_cast<double>(lines.total()));
  return lines;
}

double Fit::still_to_come(const HostLines& lines) const {
  return static_cast<double>(lines.total()) - std::min(resident, static_cast<double>(lines.process));
}

HostLines Fit::lines(const Config& config, const RankPlan& plan) const {
  const double left = on_host ? available - static_cast<double>(plan.memory.total()) : host_available;
  return host_lines(config, plan, left + std::min(resident, static_cast<double>(kProcessBytes)));
}

double Fit::needed(const Config& config, const RankPlan& plan) const {
  return static_cast<double>(plan.memory.total()) + (on_host ? still_to_come(lines(config, plan)) : 0);
}

double Fit::host_needed(const Config& config, const RankPlan& plan) const { return on_host ? 0 : still_to_come(lines(config, plan)); }

bool Fit::fits(const Config& config, const RankPlan& plan) const {
  return needed(config, plan) <= available && host_needed(config, plan) <= host_available;
}

}  // namespace hlat
