// The time of a step, played: every pipeline stage's own list of ops, messages and collectives (trace/step_trace.h) runs against a clock
// that says how long each takes on a machine. What overlaps, waits and idles follows from the lists; there is no formula for a bubble here.
//
// Ranks of one stage do the same at the same time, so a stage is played once, whatever tp and dp are. A stage has two lanes: its device,
// and the queue of collectives over dp that run overlapped with it. A receive waits for its message, a collective over stages for all of
// them. Where ranks share the cores of a host, all lanes that have something to do share them evenly.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/cost.h"
#include "parallel/mesh.h"
#include "trace/step_trace.h"

namespace hlat {

// How long things take on a machine, in seconds, for one rank of a given mesh.
class StepClock {
 public:
  StepClock() = default;
  virtual ~StepClock() = default;
  StepClock(const StepClock&) = delete;
  StepClock& operator=(const StepClock&) = delete;

  virtual double op(const TracedOp& op) const = 0;
  virtual double call(const TracedCall& call) const = 0;  // a collective, from the moment that all ranks have come
  struct Transfer {
    double latency = 0, seconds = 0;  // seconds: of the link, which carries one message at a time in each direction
  };
  virtual Transfer message(const TracedCall& call) const = 0;
  // Cores that all ranks share; 0: each rank has a device of its own. `lanes_cores` of them each rank's device lane would use.
  virtual int cores() const { return 0; }
  virtual int threads() const { return 1; }
  virtual double overlap_cost() const { return 0; }   // share of a device's speed that a queued collective takes while it runs
  virtual double step_overhead() const { return 0; }  // of each step, outside of what is traced: the host's own work
};

// One stretch of a lane, for a timeline.
struct SimSpan {
  int stage = 0;
  bool queue = false;  // the lane of queued collectives
  double begin = 0, end = 0;
  enum class What : uint8_t { compute, call, wait } what = What::compute;
  uint8_t axis = 0;     // of a call or a wait
  uint8_t kind = 0;     // of a call: CommKind
  TracedAction action;  // that it belongs to
};

struct StageTime {
  std::array<double, kOpKinds> compute{};  // seconds of the device by op
  std::array<double, kAxes> exposed{};     // of collectives and messages that the device waited for
  double bubble = 0;                       // idle: for a message that was not sent yet, or for other stages at a collective
  double slowed = 0;                       // by what ran overlapped, or by ranks that share the cores
  double queued = 0;                       // of the queue's lane
  double end = 0;
  double computed() const;
  double optimizer() const;  // of computed(): norms, clipping, update
};

struct StepTime {
  double seconds = 0;
  double overhead = 0;  // in it: outside of what is traced
  std::vector<StageTime> stages;
  std::vector<SimSpan> spans;  // where asked for
  // The stage that computes most: what the others wait for.
  const StageTime& busiest() const;
};

// stages: the trace of one rank of each. lists are those of the same step.
StepTime simulate(const std::vector<const StepTrace*>& stages, const MeshShape& shape, const StepClock& clock, bool spans = false);

}  // namespace hlat
