// How long the ops, collectives and messages of a step take on a machine model, for ranks of one mesh.
//
//   op           work / rate, the rate from the machine's measured rows (rate_table.h); without rows the larger of FLOPs over a share of
//                peak and bytes over a share of bandwidth. Never faster than the peak, never shorter than a launch.
//   products     of FP8 where they are emulated, without rates of their own: a product of bf16, and before it a cast of each operand.
//   collectives  of devices: rings or trees with a latency per step; ranks of several nodes share their network (group_place.h). On host
//                cores they are hlat's own (comm/comm_messages.cc): everybody sends to everybody, and sums in rank order.
//   messages     latency and bandwidth of the link; those that leave a node share its network.
//
// On host cores ops of a rank with n times the threads that were measured take 1/n of the time, and longer by what rates.thread_share says:
// of a share that was measured with N times the threads, share^(log n / log N) is kept.
//
// Collectives and messages of sizes that were measured between as many ranks of a node have the measured times.
//
// The machine must outlive the clock. A figure that a time needs and the file leaves empty is asked for (UsageError with the key);
// latencies, launches, overlap and overhead that are empty count as nothing, and estimates() says so.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "plan/group_place.h"
#include "plan/machine.h"
#include "plan/rate_table.h"
#include "plan/simulate.h"

namespace hlat {

// What of a config a clock depends on.
struct ClockLayout {
  MeshShape shape;
  int kv_ranks = 1;             // tp ranks that share a kv head
  DType compute = DType::bf16;  // of activations
  int threads = 0;              // of a rank, on host cores; 0: its share of them
};
ClockLayout layout_of(const Config& config);  // parallel.dp must be known

class MachineClock : public StepClock {
 public:
  MachineClock(const Machine& machine, const ClockLayout& layout);

  double op(const TracedOp& op) const override;
  double call(const TracedCall& call) const override;
  Transfer message(const TracedCall& call) const override;
  int cores() const override { return machine_.cores * hosts_; }
  int threads() const override { return threads_; }
  double overlap_cost() const override { return machine_.links.overlap_cost.value.value_or(0); }
  double step_overhead() const override { return machine_.step_overhead.value.value_or(0); }

  const GroupPlace& place(Axis axis) const { return places_[static_cast<size_t>(axis)]; }
  const Machine& machine() const { return machine_; }

  // What of these traces' times is no measurement, in words, one line each: rates taken from other rows or from shares and where those are
  // from, figures that are empty.
  std::vector<std::string> estimates(const std::vector<const StepTrace*>& traces) const;

 private:
  struct Priced {
    double seconds = 0;
    std::optional<RateBasis> basis = {};  // nullopt: from shares
  };
  Priced price(const TracedOp& op) const;
  bool emulated(const TracedOp& op) const;
  double from_shares(const TracedOp& op) const;
  const Figure& share_of(const TracedOp& op) const;
  // Of a rank against the one that was measured: more or fewer threads.
  struct Speeds {
    double products = 1, attention = 1, others = 1;
  };
  Speeds speeds() const;
  double speed(OpKind kind) const;
  std::string threads_text() const;

  const Machine& machine_;
  const ClockLayout layout_;
  int threads_ = 1;
  Speeds speeds_;
  bool emulates_fp8_ = false;
  std::array<GroupPlace, kAxes> places_;
  int hosts_ = 1;     // of cores that ranks share
  int crossing_ = 0;  // messages that leave a node at a time
};

}  // namespace hlat
