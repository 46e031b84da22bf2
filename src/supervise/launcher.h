// hlat launch: starts the ranks of a run, again and again until it is finished or nothing more can be done (restart_policy.h). One launcher
// for a run, held by a lease in RUN_DIR/launch. Everything it decides is an event of the run and a line for the terminal; what ranks were
// doing at a fault is kept in RUN_DIR/launch/fault_N.txt.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/config.h"
#include "supervise/hosts.h"

namespace hlat {

struct LaunchSetup {
  Config config;
  std::vector<std::string> train;        // words of hlat train: the program, "train", --config and overrides
  std::vector<std::string> check;        // words of hlat check --short, likewise
  std::vector<std::string> check_model;  // words of hlat check --model, likewise
  bool fresh = false;                    // the first start is to be with --fresh
  std::vector<Host> hosts;               // all, spares last
  bool in_slurm_job = false;
  std::string version;
  std::function<void(const std::string&)> show;  // output of the ranks, for the terminal
  std::function<void(const std::string&)> say;   // a line of the launcher's own
  int columns = 0;                               // of the terminal; 0: there is none
};

struct LaunchEnd {
  int exit_code = 0;
  int signal = 0;          // that ended it; 0: none
  std::string words = {};  // why it stopped; empty: it is finished
  int64_t restarts = 0;
};

// UsageError: another launcher runs, or no mesh is possible on these hosts.
LaunchEnd launch(const LaunchSetup& setup);

}  // namespace hlat
