// Groups whose ranks have a GPU each: NCCL's collectives, overlapped with the computation. Each group is made from one for host memory,
// which carries NCCL's bootstrap, the sums of host values and barriers. No CUDA or NCCL header is needed to use this one.
//
// Order: a call starts after the work that the device has so far, later work waits for it, and the host waits for nothing. On a
// CommQueue later work waits only when the queue is waited for. A watch (stream_watch.h) ends what hangs.
// Sums are taken in NCCL's order, bf16 ones rounded at each addition: equal on all ranks, but not the bits of the other groups.
#pragma once

#include <memory>
#include <string>

#include "comm/comm.h"

namespace hlat {

struct NcclOptions {
  int device = 0;
  void* work_stream = nullptr;  // a cudaStream_t; it must outlive all groups
  double time_limit_s = 600;    // that one operation may take
};

struct NcclShared;

// What the groups of one rank share. It outlives them.
class NcclRank {
 public:
  static bool available(std::string& why);  // whether the library can be loaded

  explicit NcclRank(const NcclOptions& options);
  ~NcclRank();
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  std::unique_ptr<Comm> make(std::unique_ptr<Comm> host);  // collective
  std::string describe() const;                            // "NCCL 2.28.9"

 private:
  std::unique_ptr<NcclShared> shared_;
};

}  // namespace hlat
