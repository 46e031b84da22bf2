// One per host: reads the rings of its host's ranks and reports them to the launcher, hands on signals, and ends processes for certain.
// It decides nothing. Lines of JSON, one object each:
//
//   agent -> launcher   {"hello": token, "name": host as the launcher calls it, "pid": n, "version": text}
//                       {"job": folder, "ranks": [view ...], "late_s": x, "oom_kills": n}   report, five times a second; the first says
//                                                            that the folder is there. late_s: not run since the report before
//                       {"idle": 1}                          once a second when no job is watched, or one is being ended
//                       {"ended": name, "left": [words ...], "seconds": x}
//                       {"evidence": folder, "text": words}
//   launcher -> agent   {"watch": folder, "grace_s": x}      report this job's rings; the folder is made
//                       {"signal": n, "job": folder}         to its ranks, and to those of them that start later
//                       {"end": name, "wait_s": x, "limit_s": y}   end all processes of this job or these (host_processes.h), after
//                                                            waiting x for them to end; rings go
//                       {"evidence": folder}                 the last events of each ring, in words
//                       {"ping": 1}                          once a second: the launcher lives
//                       {"quit": 1}
//
// When the launcher is gone (the connection ends, or 15 s of silence), or ends while a job is watched, the ranks are asked to save and end
// (SIGTERM), ended after grace_s, and the agent ends. A host that is about to be taken away (a pod that is drained) has the file
// /dev/shm/hlat-draining: its agent ends when it watches no job, and none starts.
#pragma once

#include <string>
#include <vector>

namespace hlat {

struct AgentOptions {
  std::vector<std::string> addresses;  // of the launcher
  int port = 0;
  std::string token;  // tells the launcher that this is its agent
  std::string name;   // of this host, as the launcher calls it
  std::string version;
  std::string draining = "/dev/shm/hlat-draining";
};

// Until the launcher says so or is gone. FaultError when it cannot be reached, or the host is drained.
void run_agent(const AgentOptions& options);

}  // namespace hlat
