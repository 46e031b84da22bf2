// Decides whether a run hangs. A rank at the end of a chain of waits (wait_graph.h) that makes no progress for longer than its limit hangs,
// and so do ranks that wait for each other in a cycle; long waits for a rank that gets on are none. Limits:
//
//   start                   launch.start_hang_s; also before any step is known
//   launch.hang_s > 0       that one, for everything after the start
//   training                2 medians and 6 spreads of the run's steps, no less than 8 s or 2.65 medians, no more than 10 s or 3 medians
//   validation              twice the longest so far, no less than in training; before one is known launch.start_hang_s
//   evaluation, last save,  twice the longest so far, no less than launch.start_hang_s
//   waits for a save
//
// Outside of steps a file that is read or written is progress too: a checkpoint that is loaded, documents that are indexed.
// A stopped process has the limit of its phase: that may be a debugger. Ranks that are gone are no hang: whoever starts ranks sees them.
// Time that the observer itself did not run is not counted: then the machine was busy or suspended, and the ranks with it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "supervise/wait_graph.h"

namespace hlat {

struct Hang {
  int rank = -1;                // the one that holds up the others; -1: none can be named
  std::vector<int> ranks = {};  // all that may
  std::string host = {};
  int64_t step = 0;
  FlightPhase phase = FlightPhase::start;
  double silent_s = 0, limit_s = 0;
  std::string cause = {};    // "rank 2 (node1) is stopped, in backward of micro-batch 1, op matmul, for 9.6 s"
  std::string waiting = {};  // "3 ranks wait in dp all_reduce 1234 (ranks 0, 1, 3) for 9.6 s"; empty: nobody
};

class HangWatch {
 public:
  HangWatch(const LaunchConfig& config, int ranks);

  // views: the latest of each rank. now: seconds, of a clock that never goes back. delay_s: how long observers did not run since the look
  // before; each delay is told once, and no more counts than has gone by.
  std::optional<Hang> look(const RankViews& views, double now, double delay_s = 0);

  double limit_of(const RankView& view) const;
  double median_step_s() const { return median_; }  // 0: no step is known
  // Ranks that were there and are gone: their process, or the view of them.
  std::vector<int> dead(const RankViews& views) const;

 private:
  struct Seen {
    bool ever = false;
    int pid = 0;
    uint64_t progress = 0, io_bytes = 0;
    double changed = 0;  // when progress last did
    double delays = 0;   // of the observer, all until then
    int64_t step = 0;    // the latest whose time is known
  };
  void learn(const RankView& view, Seen& seen);
  double silent_s(const RankView& view, double now) const;
  std::optional<Hang> not_started(const RankViews& views, double now) const;
  std::optional<Hang> stuck_end(const RankViews& views, const WaitGraph& graph, double now) const;
  std::optional<Hang> stuck_cycle(const RankViews& views, const WaitGraph& graph, double now) const;
  Hang hang_of(const RankView& view, double silent) const;

  const double hang_s_, start_hang_s_;
  std::vector<Seen> seen_;
  std::optional<double> begun_, looked_;
  double delays_ = 0;                // all so far
  std::map<int64_t, double> times_;  // of the latest steps: the longest of all ranks
  std::vector<double> longest_;      // by phase, of all ranks
  double median_ = 0, spread_ = 0;
};

}  // namespace hlat
