// What the ranks' measurements of communication come to: a table by axis, op and size, and who is wrong or slow.
#pragma once

#include "burnin/comm_measure.h"

namespace hlat {

// One line of the table: the slowest group of the axis, and the best.
struct CommRow {
  std::string axis;
  Collective op = Collective::all_reduce;
  int ranks = 1;
  int64_t bytes = 0;
  double seconds = 0, best_seconds = 0;
  int slowest = -1;  // the slowest group's first rank; -1: there is one group
  double algbw() const { return static_cast<double>(bytes) / seconds; }
  double busbw() const { return algbw() * bus_factor(op, ranks); }
  double best_busbw() const { return static_cast<double>(bytes) / best_seconds * bus_factor(op, ranks); }
};
std::vector<CommRow> comm_rows(const std::vector<CommMeasured>& by_rank);

// least_delay: see slow_peers.
std::vector<Finding> judge_comm(const std::vector<CommMeasured>& by_rank, const std::vector<std::string>& hosts, double least_delay);

}  // namespace hlat
