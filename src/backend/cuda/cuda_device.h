// Memory of one GPU and the stream all its work is ordered by. Uploads go through a ring of pinned buffers, so that they wait neither
// for earlier kernels nor for the copy itself; downloads wait for everything before them.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <string>
#include <vector>

#include "ops/device.h"

namespace hlat {

bool is_recording(cudaStream_t stream);  // what it is given is kept for a Recording, not done

class CudaDevice final : public Device {
 public:
  CudaDevice(int index, bool host_visible, size_t spare);  // spare: CudaOptions::spare_bytes
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::byte* allocate(size_t bytes) override;
  void free(std::byte* p) override;
  void upload(Tensor dst, const void* host) override;
  void download(void* host, Tensor src) override;
  size_t memory_available() const override;
  size_t memory_in_use() const override;
  std::unique_ptr<Recording> record(const std::function<void()>& work) override;
  std::unique_ptr<CopyStream> make_copy_stream() override;
  std::vector<std::string> take_notes();  // for the log, since the last call

  int index() const { return index_; }
  cudaStream_t stream() const { return stream_; }
  void use() const;  // CUDA's current device belongs to the thread

 private:
  static constexpr size_t kSlots = 4, kSlotBytes = size_t{1} << 20;

  std::unique_ptr<Recording> no_recording();  // memory is short: null, and a note

  int index_;
  bool host_visible_;
  size_t spare_;
  cudaStream_t stream_ = nullptr;
  std::byte* staging_ = nullptr;  // kSlots * kSlotBytes, pinned
  std::array<cudaEvent_t, kSlots> copied_{};
  size_t slot_ = 0;
  bool told_short_ = false;  // that there is no memory for graphs
  std::vector<std::string> notes_;
};

}  // namespace hlat
