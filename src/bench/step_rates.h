// What ops and collectives take inside a step against what they take alone. Inside a step caches hold other data, and on host cores that
// ranks share peers come late and have to be woken; neither shows when calls are repeated. Steps of the config are run, op by op, and the
// machine's measured rates are brought to what was seen there.
#pragma once

#include "config/config.h"
#include "ops/device.h"
#include "plan/machine.h"

namespace hlat {

struct StepRates {
  double products = 1, attention = 1, others = 1;  // time in a step over time alone
  double late = 0;                                 // seconds that a collective of tp takes more
};

// Collective over `world`, on host cores, for a machine whose rates were measured on the same ranks; the same on all.
StepRates measure_step_rates(const Config& config, Backend& backend, Comm& world, int local_ranks, const Machine& machine);

// What a rank alone, with more threads than the machine's rates were measured with, keeps of speed in proportion to its threads, up to 1.
struct ThreadShares {
  int threads = 0;
  double products = 1, attention = 1, others = 1;
};
// On one rank, the only one of `self`, with a backend of so many threads; the machine has its rates as in steps and no shares yet.
ThreadShares measure_thread_shares(const Config& config, Backend& backend, Comm& self, int threads, const Machine& machine);

// Rates and collectives of the machine as they are in a step.
void apply(const StepRates& rates, Machine& machine);

}  // namespace hlat
