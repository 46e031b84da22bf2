// The launcher's side of its agents: one on each host it uses, started when needed, with what they last told about the ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "config/config.h"
#include "flight/rank_view.h"
#include "supervise/child.h"
#include "supervise/line_socket.h"

namespace hlat {

// How commands reach hosts.
struct Reach {
  std::vector<std::string> remote;  // words before HOST and COMMAND
  bool by_srun = false;             // inside a Slurm job: srun starts agents, and `remote` is not used
};

// What ending the processes of a job came to.
struct JobEnd {
  double seconds = 0;
  std::vector<std::string> left;    // processes that do not end, in words
  std::vector<std::string> silent;  // hosts that did not answer
};

class Agents {
 public:
  Agents(Reach reach, std::string version);
  ~Agents();  // they end
  Agents(const Agents&) = delete;
  Agents& operator=(const Agents&) = delete;

  // Starts those that do not run. Returns the hosts whose agent does not answer within so many seconds, with the reason.
  std::map<std::string, std::string> ensure(const std::vector<std::string>& hosts, double limit_s);
  bool lives(const std::string& host) const;

  // From now on these hosts report the rings of this job, and no others.
  void watch(const std::vector<std::string>& hosts, const std::string& job, double grace_s);
  void poll(double wait_s);  // takes what agents say; waits so long for something
  // What the ranks of the job were doing when their agent last looked; times count on since then. `steps` are those of the last 64 steps.
  std::vector<RankView> views() const;
  std::vector<std::string> lost() const;             // hosts of the job whose agent is gone or silent
  double late_s() const;                             // how far the slowest agent, or this process, is behind
  int64_t oom_kills(const std::string& host) const;  // since the job is watched
  std::string host_of(int rank) const;               // as launch.hosts names it; empty: not known

  void signal_ranks(int number);
  std::string evidence(double limit_s);
  // On all hosts that have an agent: waits wait_s for the processes to end by themselves, then ends them.
  JobEnd end(const std::string& prefix, double wait_s);

 private:
  struct Agent;
  void start(const std::string& host);
  void accept();
  void take(Agent& agent, const std::string& line);
  void send_all(const std::string& line);

  Reach reach_;
  std::string version_, token_, job_;
  LineListener listener_;
  std::map<std::string, std::unique_ptr<Agent>> agents_;  // by host
  std::vector<LineSocket> callers_;                       // that have not said who they are
  std::set<std::string> watched_;                         // hosts of the job
  double polled_ = 0, pinged_ = 0, late_s_ = 0;
};

bool is_this_host(const std::string& name);

}  // namespace hlat
