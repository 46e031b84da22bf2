// Ranks that are processes, started by mpirun: messages through Open MPI, on host memory. MPI's own header stops at the
// source file. A rank waits with MPI_Test, at first eagerly, then with growing pauses, so that many ranks can share a core, and gives up
// after a time limit with a message that says who waits for whom. When a rank fails: print the error, then abort(), or end without the
// session's finalisation; mpirun then ends the other ranks.
#pragma once

#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

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
  static std::string library();         // the MPI that runs here and its version, one line
  void set_time_limit(double seconds);  // of all groups, from now on
  [[noreturn]] void abort(int code);    // ends all ranks

  // A roll call, for one thread of each rank besides that which uses the groups. Answering costs a look for questions; calling asks all
  // ranks and returns their numbers by rank, -1 where none came in time.
  void answer_roll_call(int number);
  std::vector<int> call_roll(int number, double wait_s);

 private:
  struct RollCall {
    int asks = 0, number = 0;
  };
  void send_roll_call(const RollCall& message, int to);

  [[maybe_unused]] int exceptions_;  // a build without MPI has no use for it
  std::shared_ptr<std::atomic<double>> time_limit_s_ = std::make_shared<std::atomic<double>>(0);
  std::vector<int> answers_;   // to the latest call
  std::deque<RollCall> sent_;  // kept: MPI may read them later
  std::unique_ptr<Comm> world_;
};

}  // namespace hlat
