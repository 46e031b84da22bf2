// One attempt of a run: ranks are started, watched until they end or something is wrong, and ended for certain.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "record/events.h"
#include "supervise/agents.h"
#include "supervise/child.h"
#include "supervise/hang_watch.h"
#include "supervise/rank_start.h"
#include "supervise/restart_policy.h"
#include "supervise/run_lock.h"
#include "supervise/start_output.h"
#include "supervise/straggler.h"

namespace hlat {

struct AttemptSetup {
  const Config& config;
  RankCommand command;
  Starter starter = Starter::mpirun;
  std::string run;  // what the names of all jobs of this run begin with
  int ranks = 1;
  std::function<int()> asked;                         // the signal that wants the launcher to end; 0: none
  std::function<bool()> asked_twice;                  // and at once
  std::function<bool(const std::string&)> can_spare;  // whether the run can go on without a host
  std::function<void()> check;                        // throws when this launcher has lost its run to another
  std::function<void(const std::string&)> show;       // output of the ranks, for the terminal
  std::function<void(const std::string&)> say;        // a line of the launcher
  LaunchJournal& journal;
};

struct AttemptEnd {
  Failure failure;           // kind finished: there is none
  double progressed_at = 0;  // wall time at which a rank last got on
  double found_at = 0;       // wall time
  int64_t reached = 0;       // the last step that was done
  std::string evidence;      // what every rank was doing, and its last events
  JobEnd end;
  bool started = false;                  // ranks came as far as opening the run folder
  std::optional<LockOwner> rank_0 = {};  // who holds the run folder
};

// Returns when nothing of the attempt is left, or what cannot be ended is named. Collects the evidence before it ends anything.
AttemptEnd run_attempt(const AttemptSetup& setup, Agents& agents);

}  // namespace hlat
