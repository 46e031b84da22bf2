#include "backend/cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/cuda_copy_stream.h"
#include "base/format.h"

namespace hlat {

bool is_recording(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  HLAT_CUDA(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

CudaDevice::CudaDevice(int index, bool host_visible, size_t spare) : index_(index), host_visible_(host_visible), spare_(spare) {
  use();
  HLAT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  void* staging = nullptr;
  HLAT_CUDA(cudaHostAlloc(&staging, kSlots * kSlotBytes, cudaHostAllocDefault));
  staging_ = static_cast<std::byte*>(staging);
  for (cudaEvent_t& e : copied_) HLAT_CUDA(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
}

// Errors here were reported by the call that met them.
CudaDevice::~CudaDevice() {
  cudaSetDevice(index_);
  cudaStreamSynchronize(stream_);
  for (const cudaEvent_t e : copied_) cudaEventDestroy(e);
  cudaFreeHost(staging_);
  cudaStreamDestroy(stream_);
}

void CudaDevice::use() const { HLAT_CUDA(cudaSetDevice(index_)); }

std::byte* CudaDevice::allocate(size_t bytes) {
  use();
  void* p = nullptr;
  const cudaError_t status = host_visible_ ? cudaHostAlloc(&p, bytes, cudaHostAllocMapped) : cudaMalloc(&p, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    fail<UsageError>("GPU {} has no room for {}: {} are free", index_, format_bytes(bytes), format_bytes(memory_available()));
  }
  HLAT_CUDA(status);
  return static_cast<std::byte*>(p);
}

void CudaDevice::free(std::byte* p) {
  cudaSetDevice(index_);
  cudaStreamSynchronize(stream_);
  if (host_visible_)
    cudaFreeHost(p);
  else
    cudaFree(p);
}

void CudaDevice::upload(Tensor dst, const void* host) {
  const auto* from = static_cast<const std::byte*>(host);
  for (size_t done = 0; done < dst.bytes(); done += kSlotBytes) {
    const size_t n = std::min(kSlotBytes, dst.bytes() - done);
    const cudaEvent_t copied = copied_[slot_];
    std::byte* stage = staging_ + slot_ * kSlotBytes;
    slot_ = (slot_ + 1) % kSlots;
    HLAT_CUDA(cudaEventSynchronize(copied));  // the slot's last copy
    std::memcpy(stage, from + done, n);
    HLAT_CUDA(cudaMemcpyAsync(dst.as<std::byte>() + done, stage, n, cudaMemcpyDefault, stream_));
    HLAT_CUDA(cudaEventRecord(copied, stream_));
  }
}

void CudaDevice::download(void* host, Tensor src) {
  if (src.bytes() > 0) HLAT_CUDA(cudaMemcpyAsync(host, src.data, src.bytes(), cudaMemcpyDefault, stream_));
  HLAT_CUDA(cudaStreamSynchronize(stream_));
}

size_t CudaDevice::memory_available() const {
  use();
  size_t free = 0, total = 0;
  HLAT_CUDA(cudaMemGetInfo(&free, &total));
  return free;
}

size_t CudaDevice::memory_in_use() const {
  use();
  size_t free = 0, total = 0;
  HLAT_CUDA(cudaMemGetInfo(&free, &total));
  return total - free;
}

namespace {

class CudaRecording final : public Recording {
 public:
  CudaRecording(cudaStream_t stream, cudaGraphExec_t launchable) : stream_(stream), launchable_(launchable) {}
  ~CudaRecording() override {
    cudaStreamSynchronize(stream_);
    cudaGraphExecDestroy(launchable_);
  }
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  void run() override { HLAT_CUDA(cudaGraphLaunch(launchable_, stream_)); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t launchable_;
};

// With the memory of the device that it needs, so that its first launch takes none. cudaErrorMemoryAllocation: there is not enough.
cudaError_t make_launchable(cudaGraphExec_t& launchable, cudaGraph_t graph, cudaStream_t stream) {
  cudaError_t status = cudaGraphInstantiate(&launchable, graph, 0);
  if (status != cudaSuccess) return status;
  status = cudaGraphUpload(launchable, stream);
  if (status == cudaSuccess) status = cudaStreamSynchronize(stream);  // what it takes is then taken
  if (status != cudaSuccess) cudaGraphExecDestroy(launchable);
  return status;
}

}  // namespace

std::unique_ptr<Recording> CudaDevice::no_recording() {
  if (!std::exchange(told_short_, true))
    notes_.push_back(
        fmt::format("GPU {} has no memory for CUDA graphs ({} are free, {} are left to other kernels): kernels are launched one by one, "
                    "slower in small models",
                    index_, format_bytes(memory_available()), format_bytes(spare_)));
  return nullptr;
}

// Thread-local: CUDA then forbids this thread alone what cannot be recorded. Threads that copy or allocate meanwhile are left in peace.
std::unique_ptr<Recording> CudaDevice::record(const std::function<void()>& work) {
  if (memory_available() < spare_) return no_recording();
  cudaGraph_t graph = nullptr;
  HLAT_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(stream_, &graph);
    cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  HLAT_CUDA(cudaStreamEndCapture(stream_, &graph));
  cudaGraphExec_t launchable = nullptr;
  cudaError_t status = make_launchable(launchable, graph, stream_);
  cudaGraphDestroy(graph);
  if (status == cudaSuccess && memory_available() < spare_) {
    cudaGraphExecDestroy(launchable);
    status = cudaErrorMemoryAllocation;
  }
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return no_recording();
  }
  cuda_check(status, "instantiation of a graph", __FILE__, __LINE__);
  return std::make_unique<CudaRecording>(stream_, launchable);
}

std::vector<std::string> CudaDevice::take_notes() { return std::exchange(notes_, {}); }

std::unique_ptr<CopyStream> CudaDevice::make_copy_stream() { return std::make_unique<CudaCopyStream>(index_, stream_); }

}  // namespace hlat
