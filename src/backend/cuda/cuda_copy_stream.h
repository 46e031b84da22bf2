// Copies of one GPU, overlapped with its work: a stream of their own, and events as the marks in the work. The stream waits for no other
// but through marks, so copies run while another thread launches work, records it or runs recordings (Device::record).
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <vector>

#include "tensor/copy_stream.h"

namespace hlat {

class CudaCopyStream final : public CopyStream {
 public:
  CudaCopyStream(int device, cudaStream_t work);  // the stream must outlive this
  ~CudaCopyStream() override;

  std::byte* allocate_pinned(size_t bytes) override;
  void free_pinned(std::byte* p) override;
  uint64_t mark() override;
  void wait_for(uint64_t mark) override;
  void await(uint64_t mark) override;
  void fetch(void* host, const void* device, size_t bytes) override;
  void put(void* device, const void* host, size_t bytes) override;
  void copy(void* device, const void* from_device, size_t bytes) override;
  void finish() override;

 private:
  void use() const;  // CUDA's current device belongs to the thread, and a queue has its own
  cudaEvent_t take(uint64_t mark);
  void move(void* to, const void* from, size_t bytes);

  int device_;
  cudaStream_t work_, copies_ = nullptr;
  std::mutex mutex_;  // of the events
  std::map<uint64_t, cudaEvent_t> marks_;
  std::vector<cudaEvent_t> free_;
  uint64_t next_mark_ = 1;
};

}  // namespace hlat
