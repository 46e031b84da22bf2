// Ranks that are processes, started by mpirun: messages through Open MPI, on host memory. MPI's own header stops at the
// source file. A rank waits with MPI_Test, at first eagerly, then with growing pauses, so that many ranks can share a core, and gives up
// after a time limit with a message that says who waits for whom. When a rank fails: print the error, then abort(), or end without the
// session's finalisation; mpirun then ends the other ranks.
#pragma once

#include <cstdlib>
#include <memory>

#include "comm/comm.h"

namespace hlat {

struct MpiOptions {
  double time_limit_s = 600;              // that one message or small exchange may take
  size_t max_message_bytes = 1ull << 20;  // longer ones go in pieces, and each piece that comes shows that the peer is there
};

// From MPI_Init to MPI_Finalize: one in a process. Outlives all groups made from its world.
class MpiSession {
 public:
  explicit MpiSession(const MpiOptions& options = {});
  ~MpiSession();  // while an exception passes, MPI is left as it is: finalisation would wait for the other ranks
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  Comm& world() { return *world_; }
  [[noreturn]] void abort(int code);  // ends all ranks

 private:
  [[maybe_unused]] int exceptions_;  // a build without MPI has no use for it
  std::unique_ptr<Comm> world_;
};

}  // namespace hlat
