#include "backend/cuda/cuda_copy_stream.h"

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/cuda_device.h"
#include "base/format.h"

namespace hlat {

CudaCopyStream::CudaCopyStream(int device, cudaStream_t work) : device_(device), work_(work) {
  use();
  HLAT_CUDA(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking));
}

// Errors here were reported by the call that met them.
CudaCopyStream::~CudaCopyStream() {
  cudaSetDevice(device_);
  cudaStreamSynchronize(copies_);
  for (const auto& [id, event] : marks_) cudaEventDestroy(event);
  for (const cudaEvent_t event : free_) cudaEventDestroy(event);
  cudaStreamDestroy(copies_);
}

void CudaCopyStream::use() const { HLAT_CUDA(cudaSetDevice(device_)); }

std::byte* CudaCopyStream::allocate_pinned(size_t bytes) {
  use();
  void* p = nullptr;
  const cudaError_t status = cudaHostAlloc(&p, bytes, cudaHostAllocDefault);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    fail<UsageError>("no room for {} of pinned host memory", format_bytes(bytes));
  }
  HLAT_CUDA(status);
  return static_cast<std::byte*>(p);
}

void CudaCopyStream::free_pinned(std::byte* p) {
  cudaSetDevice(device_);
  cudaStreamSynchronize(copies_);
  cudaFreeHost(p);
}

// An event of a recording stands for a place in the recording: copies that waited for it would become part of that.
uint64_t CudaCopyStream::mark() {
  use();
  HLAT_CHECK(!is_recording(work_), "a mark inside a recording of the device's work");
  const std::lock_guard lock(mutex_);
  cudaEvent_t event = nullptr;
  if (free_.empty()) {
    HLAT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  } else {
    event = free_.back();
    free_.pop_back();
  }
  marks_.emplace(next_mark_, event);
  HLAT_CUDA(cudaEventRecord(event, work_));
  return next_mark_++;
}

cudaEvent_t CudaCopyStream::take(uint64_t mark) {
  const std::lock_guard lock(mutex_);
  const auto found = marks_.find(mark);
  HLAT_CHECK(found != marks_.end(), "no mark {}", mark);
  const cudaEvent_t event = found->second;
  marks_.erase(found);
  return event;
}

// A wait holds for what the event stood for at that moment, so the event may be recorded anew at once.
void CudaCopyStream::wait_for(uint64_t mark) {
  use();
  const cudaEvent_t event = take(mark);
  HLAT_CUDA(cudaStreamWaitEvent(copies_, event, 0));
  const std::lock_guard lock(mutex_);
  free_.push_back(event);
}

void CudaCopyStream::await(uint64_t mark) {
  use();
  const cudaEvent_t event = take(mark);
  HLAT_CUDA(cudaEventSynchronize(event));
  const std::lock_guard lock(mutex_);
  free_.push_back(event);
}

void CudaCopyStream::move(void* to, const void* from, size_t bytes) {
  use();
  if (bytes > 0) HLAT_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, copies_));
}

void CudaCopyStream::fetch(void* host, const void* device, size_t bytes) { move(host, device, bytes); }
void CudaCopyStream::put(void* device, const void* host, size_t bytes) { move(device, host, bytes); }
void CudaCopyStream::copy(void* device, const void* from_device, size_t bytes) { move(device, from_device, bytes); }

void CudaCopyStream::finish() {
  use();
  HLAT_CUDA(cudaStreamSynchronize(copies_));
}

}  // namespace hlat
