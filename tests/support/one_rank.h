// A mesh of one rank, for tests that need no peers.
#pragma once

#include "comm/self_comm.h"
#include "parallel/mesh.h"

namespace hlat {

inline Config with_one_rank(Config config) {
  config.parallel = {.dp = 1};
  return config;
}

inline Mesh one_rank(const Config& config) {
  return {with_one_rank(config), 0, [](const AxisGroup& g) { return std::make_unique<SelfComm>(g.name); }};
}

}  // namespace hlat
