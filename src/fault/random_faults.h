// Faults at random times: exponential pauses, a kind and a rank for each. All ranks draw the same ones, from the seed and the number of
// the attempt, and each acts on its own.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "config/fault_spec.h"

namespace hlat::fault {

struct RandomFault {
  double at_s = 0;  // after the start of the attempt
  FaultKind kind = FaultKind::kill;
  int rank = 0;
  bool operator==(const RandomFault&) const = default;
};

class RandomFaults {
 public:
  // kinds: at least one. every_s: the mean of the pauses.
  RandomFaults(uint64_t seed, int attempt, double every_s, std::vector<FaultKind> kinds, int ranks);

  const RandomFault& next() const { return next_; }
  void draw();  // the one after it

 private:
  RandomStream stream_;
  double every_s_;
  std::vector<FaultKind> kinds_;
  int ranks_;
  RandomFault next_;
};

}  // namespace hlat::fault
