// How fast tensors move between the ranks of a run, as the latency, bandwidth and rate of sums of a machine model: gathers and sums of 1
// KiB to 64 MiB over all ranks, and the figures that fit their times best, each size weighing the same. Before each call the ranks compute
// for a while, as in a step: they come at slightly different times, asleep, with other data in their caches.
#pragma once

#include <string>
#include <vector>

#include "comm/comm.h"
#include "config/config.h"
#include "ops/device.h"

namespace hlat {

struct CollectiveTime {
  CommKind kind = CommKind::all_gather;
  double bytes = 0, seconds = 0;  // of the whole tensor; mean of the calls
};

struct LinkFit {
  double latency = 0, bytes_per_s = 0;
  double sum_bytes_per_s = 0;  // on host cores
};

// Of the model in plan/collective_time.h, for ranks on one level: on host cores all gathers are messages to everybody, on devices a ring.
LinkFit fit_links(const std::vector<CollectiveTime>& times, int ranks, bool host_cores);

// Collective over all ranks, more than one of them; means over ranks. parallel.* other than `comm` of the config does not matter.
std::vector<CollectiveTime> measure_links(const Config& config, Backend& backend, Comm& world, int local_ranks, std::string& transport);

// The mean without the largest tenth: what is often late counts, what another program did once does not.
double trimmed_mean(std::vector<double> v);

}  // namespace hlat
