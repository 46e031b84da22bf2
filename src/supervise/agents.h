// The launcher's side of its agents: one on each host it uses, started when needed, with what they last told about the ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "config/config.h"
#include "flight/rank_view.h"
#include "supervise/agent_calls.h"
#include "supervise/child.h"
#include "supervise/late_count.h"
#include "supervise/ping_thread.h"

namespace hlat {

// How commands reach hosts.
struct Reach {
  std::vector<std::string> remote;  // words before HOST and COMMAND
  bool by_srun = false;             // inside a Slurm job: srun starts agents, and `remote` is not used
};

// How processes are ended.
struct EndOrder {
  double wait_s = 0;                 // for them to end by themselves
  double limit_s = 30;               // for the kernel to let them go
  std::function<bool()> hurry = {};  // asked while agents are waited for: true ends the wait,
  double at_least_s = 5;             //   but not before this time
};

// What ending the processes of a job came to.
struct JobEnd {
  double seconds = 0;
  std::vector<std::string> left;    // processes that do not end, in words
  std::vector<std::string> stuck;   // their hosts
  std::vector<std::string> silent;  // hosts that did not answer
};

class Agents {
 public:
  Agents(Reach reach, std::string version);
  ~Agents();  // they end
  Agents(const Agents&) = delete;
  Agents& operator=(const Agents&) = delete;

  // Starts those that do not run. Returns the hosts whose agent does not answer within so many seconds, with the reason; a start that is
  // under way goes on, and is waited for by the next call.
  std::map<std::string, std::string> ensure(const std::vector<std::string>& hosts, double limit_s);
  bool lives(const std::string& host) const;

  // From now on these hosts report the rings of this job, and no others. Returns those whose agent does so within so many seconds not.
  std::vector<std::string> watch(const std::vector<std::string>& hosts, const std::string& job, double grace_s, double limit_s);
  void poll(double wait_s);  // takes what agents say; waits so long for something
  // What the ranks of the job were doing when their agent last looked; times count on since then. `steps` are those of the last 64 steps.
  std::vector<RankView> views() const;
  std::vector<std::string> lost() const;             // hosts of the job whose agent is gone or silent
  double take_late_s();                              // how long the slowest agent, or this process, did not run since the last call
  int64_t oom_kills(const std::string& host) const;  // since the job is watched
  std::string host_of(int rank) const;               // as launch.hosts names it; empty: not known

  void signal_ranks(int number);  // those that start later too
  std::string evidence(double limit_s);
  // On all hosts whose agent lives; one that does not answer is given up.
  JobEnd end(const std::string& name, const EndOrder& order);

 private:
  struct Agent;
  bool starts(const std::string& host) const;
  void start(const std::string& host);
  void meet(AgentCall call);
  void take(Agent& agent);
  void send_all(const std::string& line);

  Reach reach_;
  std::string version_, job_;
  AgentCalls calls_;
  PingThread pings_;
  std::map<std::string, std::unique_ptr<Agent>> agents_;  // by host
  std::set<std::string> watched_;                         // hosts of the job
  double polled_ = 0;
  LateCount late_;  // of this process
};

std::string random_word(int letters);  // that no other process has: 8 letters for each 32 bits
bool is_this_host(const std::string& name);

}  // namespace hlat
