// What monitors cost a run: steps that measure themselves and steps that do not, in turn on one model, and the probe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "comm/comm.h"
#include "config/config.h"
#include "ops/device.h"

namespace hlat {

struct MonitorBench {
  std::string machine;
  int ranks = 1;
  int64_t steps = 0;               // of each kind
  int64_t every = 0;               // monitor.every
  int64_t probe_every = 0;         // steps
  double step_s = 0;               // median, of a step that does not measure itself
  double more_s = 0;               // median of the differences to its neighbour that does
  double least_s = 0, most_s = 0;  // quartiles of these differences
  double probe_s = 0;              // median
  double step_share() const { return more_s / (step_s * static_cast<double>(every)); }
  double probe_share() const { return probe_s / (step_s * static_cast<double>(probe_every)); }
  double share() const { return step_share() + probe_share(); }  // of the time of all steps
};

// On every rank of `world`; figures are of rank 0. local_ranks: of those, the ones on this host. monitor.every must not be 0.
MonitorBench bench_monitors(const Config& config, Backend& backend, Comm& world, int local_ranks, int64_t steps);
std::string monitor_bench_text(const MonitorBench& bench);
nlohmann::ordered_json monitor_bench_json(const MonitorBench& bench);

}  // namespace hlat
