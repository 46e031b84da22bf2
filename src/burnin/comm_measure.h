// What a rank measures of the groups it is in.
#pragma once

#include <string>
#include <vector>

#include "burnin/check_run.h"
#include "burnin/comm_cases.h"
#include "runtime/device_comm.h"

namespace hlat {

struct CommTime {
  std::string axis;
  int group = 0, ranks = 1;  // the group's first rank, and how many it has
  Collective op = Collective::all_reduce;
  int64_t bytes = 0;
  double typical = 0, best = 0;  // seconds of a call
};

struct WrongData {
  std::string axis;
  Collective op = Collective::all_reduce;
  int64_t bytes = 0, element = 0;
  int rank = 0, from = -1;  // of the world: who has it, and whose element it is; -1: a sum over all
  double got = 0, known = 0;
};

struct CommMeasured {
  std::vector<CommTime> times;
  std::vector<LinkTime> links;   // in which this rank is the first
  std::vector<WrongData> wrong;  // of each case and source the first
  std::string transport;
};

double least_delay(const CheckRun& run);  // of a link that is slow (slow_peers), in this form of the check and with these ranks

CommMeasured measure_comm(const CheckRun& run);  // collective

}  // namespace hlat
