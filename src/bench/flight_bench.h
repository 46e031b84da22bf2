// What the flight recorder costs: the time of one event, the events of a step, and steps with and without it, measured in turn on two
// models that are otherwise equal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "comm/comm.h"
#include "config/config.h"
#include "ops/device.h"

namespace hlat {

struct FlightBench {
  std::string machine;
  int ranks = 1;
  int64_t steps = 0;                       // of each kind
  double event_ns = 0;                     // of the dearest kind
  double events_per_step = 0;              // of rank 0
  double step_s = 0, recorded_step_s = 0;  // medians, without and with the recorder
  double share() const { return events_per_step * event_ns * 1e-9 / step_s; }
};

// On every rank of `world`; figures are of rank 0. local_ranks: of those, the ones on this host.
FlightBench bench_flight(const Config& config, Backend& backend, Comm& world, int local_ranks, int64_t steps);
std::string flight_bench_text(const FlightBench& bench);
nlohmann::ordered_json flight_bench_json(const FlightBench& bench);

}  // namespace hlat
