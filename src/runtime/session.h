// This process among its peers: the world communicator, from MPI when a launcher started several ranks, else of one.
#pragma once

#include <memory>
#include <string>

#include "comm/comm.h"
#include "runtime/backends.h"
#include "runtime/launch.h"
#include "runtime/neighbours.h"

namespace hlat {

class MpiSession;

class Session {
 public:
  // timeout_s: how long a rank waits for a silent peer before it ends the run.
  Session(const Launch& launch, int64_t timeout_s);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Comm& world() const { return *world_; }
  int rank() const { return world_->rank(); }
  const std::vector<int>& ranks_on_host() const { return neighbours_.ranks; }
  int local_ranks() const { return static_cast<int>(neighbours_.ranks.size()); }
  int threads() const { return neighbours_.threads; }
  int cores() const { return neighbours_.cores; }                   // that this process may use, also where others do
  const std::string& advice() const { return neighbours_.advice; }  // about the launcher, or empty
  Place place() const { return {.threads = neighbours_.threads, .local_rank = neighbours_.local_rank}; }
  const std::string& host() const { return host_; }
  std::string mpi_library() const;  // its version, in words; empty with one rank
  std::string where() const;        // "rank 3 of 8 on node-2"

  [[noreturn]] void abort(int code);  // ends all ranks

  void set_time_limit(double seconds);  // how long a rank waits for a silent peer, from now on
  // See MpiSession: for the thread of a StartWatch.
  void answer_roll_call(int number);
  std::vector<int> call_roll(int number, double wait_s);

 private:
  std::unique_ptr<MpiSession> mpi_;
  std::unique_ptr<Comm> self_;
  Comm* world_ = nullptr;
  std::string host_;
  Neighbours neighbours_;
};

}  // namespace hlat
