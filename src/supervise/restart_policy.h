// What follows a failure of a run under hlat launch: a pure function of the failures so far and the config.
//
//   never again     bad input, a bug, the end of the run; whatever ended after the launcher was itself asked to end
//   budget          launch.restarts in all
//   pause           0, then 1, 2, 4 ... launch.backoff_s while no step beyond the best is gained
//   the same again  a failure of one kind at one step, launch.same_failure times without that step being passed in between: a stop with
//                   the evidence. Numbers follow loss.*: a step that is not finite is tried once more as it is, since hardware may
//                   have failed, then without its batch; a spike is skipped at once. A step that fails without its batch too is a stop.
//                   An alarm goes back behind the step with which it began, without the batches from there to the step that found it:
//                   the first ones of them that loss.skips has room for, as what follows the beginning may well be its result. One
//                   more of its rule soon after is a stop.
//   memory          a second kill for lack of memory with no step gained is a stop: nothing else would come of a third
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace hlat {

enum class FailureCause : uint8_t {
  finished,       // exit 0: no failure
  bad_input,      // exit 2
  bug,            // exit 3
  preempted,      // exit 6: ended by a signal, with all saved
  dead_rank,      // a process ended by a signal, or without a word
  out_of_memory,  // killed by the system for lack of memory
  dead_host,
  hang,
  start_hang,
  health,      // replicas or sums that differ
  non_finite,  // a loss or gradient
  alarm,       // of the trainer, where loss.on_alarm ends the process; its step is the one with which the trouble began
  spike,       // a loss, where loss.on_spike ends the process
  error,       // exit 1, or a code that is none of these
  fault_exit,  // exit 4: a rank found a peer, the network or a disk failed
  straggler,   // the launcher ended the run to get rid of a slow host (launch.evict)
};

struct Failure {
  FailureCause kind = FailureCause::error;
  int64_t step = 0;        // under way; 0: while it started
  int64_t until = 0;       // alarm: the step that found it, not before `step`; 0: not known
  int rank = -1;           // that is the cause; -1: not known
  std::string host = {};   // of that rank
  int exit_code = 0;       // of that rank; 0: it has none
  std::string words = {};  // what happened, for people; compared only as to the rule of an alarm, which they name
  int64_t saved = 0;       // newest checkpoint at that time; 0: none
  bool asked = false;      // the launcher itself had been asked to end, and passed that on
};

enum class RestartFrom : uint8_t {
  newest,           // checkpoint, or the beginning where there is none
  before,           // the newest of a step below Decision::before
  verified_before,  // the newest of a step below it that a health check covers
};

struct StepRange {
  int64_t first = 0, last = 0;
  std::vector<int64_t> steps() const;
  bool operator==(const StepRange&) const = default;
};
std::string batches_text(const StepRange& range);  // "the batch of step 3", "the batches of steps 3 to 7"

struct Decision {
  bool restart = false;
  int exit_code = 0;       // of a stop
  std::string words = {};  // why, with the evidence
  double pause_s = 0;
  RestartFrom from = RestartFrom::newest;
  int64_t before = 0;
  std::optional<StepRange> skip = {};  // the steps whose batches are left out from now on, with those among them that were before
  std::string evict = {};              // host to go on without; empty: none
};

// history: all failures of the run, the latest last; at least one. Each but the last was followed by what this function said then.
// skips: the steps left out before the latest failure, in order, whatever the history still has of why.
Decision decide(const std::vector<Failure>& history, const std::vector<int64_t>& skips, const LaunchConfig& launch, const LossConfig& loss);

std::string_view name_of(FailureCause kind);                      // "dead_rank"
std::optional<FailureCause> failure_kind(std::string_view name);  // none: it is no such name
FailureCause failure_of_exit(int exit_code);                      // what a code alone tells; 5 is taken for non_finite
int exit_code_of(const Failure& failure);                         // its own, or the one that its kind stands for
// Of a launcher that a signal ended. ranks: the code of the ranks, 0: none ran. trained: ranks were past their start, so that what was not
// saved is lost; without that everything is on disk, as after a save.
int exit_code_of_stop(int signal, int ranks, bool trained);
std::string describe(const Failure& failure);  // "hang at step 12, rank 3 on node2: waits in ..."

}  // namespace hlat
