// This process among its peers: the world communicator, from MPI when a launcher started several ranks, else of one.
#pragma once

#include <memory>
#include <string>

#include "comm/comm.h"
#include "runtime/backends.h"
#include "runtime/launch.h"

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
  int local_ranks() const { return local_ranks_; }  // on this host
  Place place() const { return {.threads = threads_, .ranks = world_->size(), .local_rank = local_rank_}; }
  // Cores this process may use, divided by the local ranks that may use the same ones.
  int threads() const { return threads_; }
  std::string where() const;  // "rank 3 of 8 on node-2"

  [[noreturn]] void abort(int code);  // ends all ranks

 private:
  void meet_neighbours();

  std::unique_ptr<MpiSession> mpi_;
  std::unique_ptr<Comm> self_;
  Comm* world_ = nullptr;
  std::string host_;
  int local_ranks_ = 1;
  int local_rank_ = 0;
  int threads_ = 1;
};

}  // namespace hlat
