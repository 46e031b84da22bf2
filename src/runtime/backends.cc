#include "runtime/backends.h"

#include "backend/cpu/cpu_backend.h"

namespace hlat {

std::unique_ptr<Backend> make_backend(const DeviceConfig& device, int threads) {
  if (device.threads > 0) threads = static_cast<int>(device.threads);
  return std::make_unique<CpuBackend>(CpuOptions{.threads = threads, .isa = device.isa});
}

}  // namespace hlat
