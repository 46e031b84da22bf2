// Devices that whole training steps are tested on: the CPU and, where there is a GPU, cuda.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#ifdef HLAT_HAVE_CUDA
#include "backend/cuda/cuda_backend.h"
#endif

namespace hlat {

inline bool has_gpu() {
#ifdef HLAT_HAVE_CUDA
  return cuda_device_count() > 0;
#else
  return false;
#endif
}

// Null without a GPU, or in a build without CUDA. host_visible: the test may read and write its tensors directly.
inline std::unique_ptr<Backend> cuda_backend([[maybe_unused]] bool host_visible) {
#ifdef HLAT_HAVE_CUDA
  if (cuda_device_count() > 0) return std::make_unique<CudaBackend>(CudaOptions{.host_visible = host_visible});
#endif
  return nullptr;
}

struct TestDevice {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
};
inline void PrintTo(const TestDevice& device, std::ostream* out) { *out << device.name; }  // for GoogleTest

inline TestDevice cpu_device(const std::string& isa = "auto", int threads = 2) {
  return {"cpu_" + isa, [=] { return std::make_unique<CpuBackend>(CpuOptions{.threads = threads, .isa = isa}); }};
}

inline std::vector<TestDevice> test_devices() {
  std::vector<TestDevice> devices = {cpu_device()};
  if (cuda_backend(false)) devices.push_back({"cuda", [] { return cuda_backend(false); }});
  return devices;
}

}  // namespace hlat
