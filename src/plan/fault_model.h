// Faults on paper: the goodput to expect of a job whose nodes fail at random, the interval of checkpoints that makes it largest, and what
// is lost in dollars, by cause.
//
// Nodes fail independently, each after an exponential time, and any failure stops the job: it fails at rate r = nodes / MTBF while it
// works or starts. Then nothing happens for `detection`, and a start takes `restart`, in which nodes can fail again. Work goes on from the
// latest save that was committed. With an interval i of work between saves, stall s, commit time c, and w = i + s, one interval takes
//
//   E = exp(r (restart + c)) (exp(r w) - 1) (1 / r + detection)
//
// on average, and goodput = i / E, which is a product: 1 / (1 + r detection) of not waiting to be found, exp(-r restart) of not
// starting, exp(-r c) r w / (exp(r w) - 1) of not repeating work, i / w of not stalling. To first order in r that is Young's formula:
// lost = s / i + r (i / 2 + detection + restart).
#pragma once

#include <cstdint>
#include <optional>

namespace hlat {

struct FaultAsk {
  int64_t nodes = 1;
  double node_mtbf_h = 0;   // mean time between failures of one node; infinity: they never fail
  double detection_s = 0;   // from the fault until it is known
  double restart_s = 0;     // ending processes, start, load, until the first step begins
  double save_stall_s = 0;  // what one save adds to the time of training
  double commit_s = 0;      // from then until it can be loaded, while training goes on
  double step_s = 0;

  double failures_per_s() const;  // of the job, while it works or starts
};

// Refuses what makes no sense (UsageError with its name).
void validate(const FaultAsk& ask);

// Shares of the wall time; they add up to 1.
struct FaultShares {
  double useful = 1;                                           // goodput
  double saves = 0, repeated = 0, detection = 0, restart = 0;  // lost
  double failures_per_day = 0;
  double up() const { return useful + saves + repeated; }  // the job works, if only on what it did before
};

// interval_s: of work between saves; infinity: no saves.
FaultShares fault_shares(const FaultAsk& ask, double interval_s);

// Steps of work between saves; nothing: no saves.
using SaveEvery = std::optional<int64_t>;
double interval_seconds(const FaultAsk& ask, SaveEvery every);  // infinity for nothing
// With the largest goodput. A save does not begin before the one before it is committed. Nothing fails: nothing.
SaveEvery best_save_every(const FaultAsk& ask);
// The same in seconds, without regard to steps and commits: the root i of 1 - exp(-r (i + s)) = r i, where the derivative of the goodput
// is 0. Infinity where nothing fails.
double best_interval_s(double failures_per_s, double save_stall_s);

// A share of time that somebody reports, to be explained.
struct SeenShare {
  double share = 0;                       // above 0 and below 1
  std::optional<double> interval_s = {};  // it is the goodput with this work between saves; nothing: it is up()
};
// All else as in `ask`, the MTBF of a node in hours, or the time to find a fault, that makes the share. Nothing where no number does.
std::optional<double> explaining_mtbf_h(const FaultAsk& ask, const SeenShare& seen);
std::optional<double> explaining_detection_s(const FaultAsk& ask, const SeenShare& seen);

}  // namespace hlat
