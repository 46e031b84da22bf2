// How fast this machine's ops are, one by one, under sustained load: all cases in turns, round after round, so that each has measurements
// from the whole time, and on all ranks at once, so that each has the load that a step would have beside it.
#pragma once

#include <vector>

#include "bench/op_cases.h"
#include "comm/comm.h"
#include "ops/device.h"
#include "plan/machine.h"

namespace hlat {

struct OpRatesOptions {
  double seconds = 60;        // for all rounds
  double warm_up = 0;         // before them: clocks fall under load
  size_t most_bytes = 0;      // of a case's tensors
  double most_seconds = 0.5;  // of one call, by the rate of a large product; larger cases are left out unless they are needed
};

struct OpRatesFound {
  Rates rates;                           // tables and launch, without source
  double matmul_peak = 0, fp8_peak = 0;  // the fastest product of the activations' type and of FP8; 0: none
  int rounds = 0;
  size_t cases = 0, left_out = 0;
};

// Collective over `world`; all ranks have the same cases and get the means over ranks.
OpRatesFound measure_op_rates(Backend& backend, Comm& world, std::vector<OpCase> cases, const OpRatesOptions& options);

}  // namespace hlat
