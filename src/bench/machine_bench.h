// hlat bench machine: measures this machine and makes its machine file (plan/machine.h). With several ranks all measure at the same time,
// as they would work, and their links are measured too.
#pragma once

#include <optional>
#include <string>

#include "bench/link_rates.h"
#include "bench/step_rates.h"
#include "config/config.h"
#include "ops/device.h"
#include "plan/machine.h"

namespace hlat {

struct MachineBenchOptions {
  std::string name;
  double seconds = 60;                   // for the ops
  bool step = false;                     // the ops of the config's step, besides the shape table
  int threads = 1, cores = 1;            // of this rank, and that it may use of the host with the others
  int own_cores = 1;                     // that this rank may use when the others wait
  double disk_write = 0, disk_read = 0;  // bytes per second; 0: not measured
  std::string date;
};

struct MachineBench {
  Machine machine;
  int rounds = 0;
  size_t cases = 0, left_out = 0;
  std::vector<CollectiveTime> links;
  std::string transport;
  std::optional<StepRates> in_step = {};          // on host cores, with a config and several ranks
  std::optional<ThreadShares> with_threads = {};  // there, on rank 0, where it has more cores than threads
};

// Collective; complete on rank 0.
MachineBench bench_machine(const Config& config, Backend& backend, Comm& world, int local_ranks, const MachineBenchOptions& options);
std::string machine_bench_text(const MachineBench& bench);

}  // namespace hlat
