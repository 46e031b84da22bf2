// What a launcher that is started again has to know of those before it, from the events of the run: failures count on over a launcher that
// was killed, and over one that gave up. A run that is finished or started anew has no past; a launcher that a person stopped leaves its
// failures and the hosts that were left out behind, but not the batches that are skipped.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "record/events.h"
#include "supervise/restart_policy.h"

namespace hlat {

struct LaunchHistory {
  std::vector<Failure> failures = {};
  std::set<std::string> evicted = {};
  std::vector<int64_t> skips = {};         // steps, in their order
  std::vector<int64_t> skips_before = {};  // those of before the latest failure
  int64_t attempts = 0;                    // the highest number that the folder has seen: files are named by it
  int64_t restarts = 0;
  bool started = false;  // ranks of this run have trained
  bool pending = false;  // no rank was ready since the latest failure: what it asks for is still to be done
};

// fresh: the run is to be started anew.
LaunchHistory launch_history(const std::vector<RunEvent>& events, bool fresh);

// What comes to the steps that are skipped.
std::vector<int64_t> merged_steps(std::vector<int64_t> a, const std::vector<int64_t>& b);

}  // namespace hlat
