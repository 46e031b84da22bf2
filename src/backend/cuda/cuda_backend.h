// An NVIDIA GPU as a Device and a Backend. No CUDA header is needed to use this one.
// A program with this backend starts on machines without a GPU or its driver: the CUDA runtime is linked in and looks for the driver
// when first asked, so cuda_device_count() is then 0 and ask_cuda() tells why. Several processes may share one GPU.
#pragma once

#include <memory>
#include <string>

#include "ops/device.h"
#include "ops/gpu_facts.h"

namespace hlat {

int cuda_device_count();  // 0 without a GPU or a driver; never throws
CudaAnswer ask_cuda();    // the same, with the reason; likewise
GpuFacts gpu_facts(int device);
GpuCode cuda_code();  // what this program's kernels were built for

struct CudaOptions {
  int device = 0;
  bool host_visible = false;   // memory that the host can read and write too, slowly: for tests
  std::string cache_dir = {};  // where measured kernel choices are kept; empty: nowhere
  bool deterministic = true;   // the same call gives the same bits
  // What recordings leave free. CUDA loads kernels when they are first launched, with up to some MiB of code each, and one that keeps 1 KiB
  // per thread in local memory takes that for all threads which an H200 holds at once, 264 MiB.
  size_t spare_bytes = size_t{512} << 20;
};

class CudaDevice;
struct CudaContext;

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const CudaOptions& options);
  ~CudaBackend() override;
  Device& device() override;
  std::unique_ptr<Ops> make_ops(Region& temp) override;
  std::unique_ptr<Ops> make_inference_ops(Region& temp) override;
  std::string describe() const override;  // "NVIDIA H200, CUDA 13.0, driver 580.159.04, 139.8 GiB"
  std::string device_id() const override;
  std::string kernel_choices() const override;
  std::vector<std::string> use_kernel_choices(const std::string& json) override;
  std::vector<std::string> take_kernel_notes() override;

  int index() const;
  void* stream() const;  // the cudaStream_t that all work is ordered by, for libraries that overlap work of their own with it

 private:
  std::unique_ptr<CudaDevice> device_;
  std::shared_ptr<CudaContext> context_;
};

}  // namespace hlat
