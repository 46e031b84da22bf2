// One NCCL communicator and the stream its operations run on, in order, overlapped with the device's work stream. Calls return at once.
// Uneven shares (ADR 0004) have no collective in NCCL: they are a group of reductions or broadcasts, one for each rank's share.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "comm/shares.h"
#include "comm/stream_watch.h"

namespace hlat {

// What all groups of one rank share.
struct NcclShared {
  NcclShared(int device_index, cudaStream_t work_stream, double limit_s);
  ~NcclShared();
  NcclShared(const NcclShared&) = delete;
  NcclShared& operator=(const NcclShared&) = delete;

  int device;
  cudaStream_t work;
  void* spare = nullptr;  // kSpareBytes of the device, for first messages
  StreamWatch watch;
  static constexpr size_t kSpareBytes = 256;
};

class NcclGroup final : public WatchedStream {
 public:
  // Collective over the ranks that have the id.
  NcclGroup(NcclShared& shared, const ncclUniqueId& id, int rank, int size, std::string name);
  ~NcclGroup() override;

  void wait();         // until all operations are done
  void after_work();   // later operations start after the work so far
  void before_work();  // later work starts after the operations so far
  // A point after the operations so far, to be waited for by the work stream once.
  cudaEvent_t point();
  void work_waits(cudaEvent_t point);

  void all_reduce(void* data, int64_t count, DType dtype);
  void reduce_scatter(void* own, const void* full, const Shares& shares, DType dtype);
  void all_gather(void* full, const void* own, const Shares& shares);
  void broadcast(void* data, size_t bytes, int root);
  void send(const void* data, size_t bytes, int peer);
  void recv(void* data, size_t bytes, int peer);

  std::optional<Current> current() override;
  std::string error() override;
  void abort() override;

 private:
  struct Operation {
    cudaEvent_t begin = nullptr, end = nullptr;
    uint64_t number = 0;
    const char* kind = "";
  };
  template <class Body>
  void run(const char* kind, const Body& body);
  cudaEvent_t take_event();

  NcclShared& shared_;
  int rank_, size_;
  std::string name_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t work_done_ = nullptr, ops_done_ = nullptr;
  std::mutex mutex_;  // of the members below: the watch reads them too
  std::deque<Operation> under_way_;
  std::vector<cudaEvent_t> free_;
  uint64_t next_ = 1;
  bool aborted_ = false;
};

}  // namespace hlat
