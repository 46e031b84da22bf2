// The list of a stage as the simulator plays it: ops that follow each other become one piece, with its time on a machine.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trace/step_trace.h"

namespace hlat {

class StepClock;

// A stretch of a list that nothing interrupts: ops as one, or one of the other entries.
struct TracePiece {
  TraceKind kind = TraceKind::op;
  uint32_t index = 0;
  double seconds = 0;  // of ops
  uint32_t sums = 0;   // of ops: which of the lists of sums
  TracedAction action = {};
};

using OpSums = std::vector<std::pair<uint8_t, double>>;  // seconds by OpKind

// The lists of sums are added to all_sums.
std::vector<TracePiece> pieces_of(const StepTrace& trace, const StepClock& clock, std::vector<OpSums>& all_sums);

}  // namespace hlat
