#include "runtime/backends.h"

#include "backend/cpu/cpu_backend.h"
#ifdef HLAT_HAVE_CUDA
#include "backend/cuda/cuda_backend.h"
#include "base/machine.h"
#endif

namespace hlat {

namespace {

#ifdef HLAT_HAVE_CUDA
// A null pointer where the config leaves the choice and it falls on the CPU.
std::unique_ptr<Backend> make_cuda(const DeviceConfig& device, const Place& place) {
  const int gpus = cuda_device_count();
  if (gpus > 0)
    return std::make_unique<CudaBackend>(
        CudaOptions{.device = place.local_rank % gpus, .cache_dir = user_cache_dir(), .deterministic = device.deterministic});
  if (device.backend == "cuda") fail<UsageError>("device.backend = cuda: no GPU that a CUDA driver gives access to");
  return nullptr;
}
#else
std::unique_ptr<Backend> make_cuda(const DeviceConfig& device, const Place& /*place*/) {
  if (device.backend == "cuda") throw UsageError("device.backend = cuda: this hlat was built without CUDA");
  return nullptr;
}
#endif

}  // namespace

std::unique_ptr<Backend> make_backend(const DeviceConfig& device, const Place& place) {
  if (device.backend != "cpu")
    if (auto cuda = make_cuda(device, place)) return cuda;
  const int threads = device.threads > 0 ? static_cast<int>(device.threads) : place.threads;
  return std::make_unique<CpuBackend>(CpuOptions{.threads = threads, .isa = device.isa});
}

}  // namespace hlat
