#include "runtime/backends.h"

#include <sched.h>

#include "backend/cpu/cpu_backend.h"

namespace hlat {

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

std::unique_ptr<Backend> make_backend(const DeviceConfig& device) {
  const int threads = device.threads > 0 ? static_cast<int>(device.threads) : available_cores();
  return std::make_unique<CpuBackend>(CpuOptions{.threads = threads, .isa = device.isa});
}

}  // namespace hlat
