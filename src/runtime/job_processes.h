// The processes of this job on this host, as the kernel shows them: found by the job and rank that the launcher wrote into their
// environment. It needs no connection, so it can tell who is missing while the ranks have not met, and when a peer has died.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/launch.h"

namespace hlat {

struct JobProcess {
  int pid = 0;
  char state = '?';  // as in /proc/PID/stat: T is stopped, D waits for a device
};

// By rank. Empty where the launcher gives its jobs no name.
std::map<int, JobProcess> job_processes(const Environment& env);

struct Absent {
  std::vector<int> ranks;  // gone or stopped
  std::string words;       // "rank 2 is gone, rank 3 (process 17) is stopped"; empty: all run
};
// Of the ranks that should run on this host.
Absent absent_ranks(const std::map<int, JobProcess>& found, const std::vector<int>& expected);

// The ranks that should run on this host, before they have met: all, where the launcher says that they are on one host; else those found.
std::vector<int> expected_here(const Launch& launch, const Environment& env, const std::map<int, JobProcess>& found);

}  // namespace hlat
