// The ranks on this host: who they are, and how they share its cores. Every rank tells the others its host and the cores it may use.
#pragma once

#include <string>
#include <vector>

#include "comm/comm.h"

namespace hlat {

struct Neighbours {
  std::vector<int> ranks;  // on this host, in order
  int local_rank = 0;      // this one among them
  int cores = 1;           // this process may use
  int threads = 1;         // those cores, divided by the local ranks that may use the same ones
  // That the launcher keeps this host's ranks from some of its cores, and how to change that; empty: it does not.
  std::string advice = {};
};

// Collective over `world`. host: names this machine among all; launcher: as in Launch::by.
Neighbours find_local_ranks(Comm& world, const std::string& host, const std::string& launcher);

}  // namespace hlat
