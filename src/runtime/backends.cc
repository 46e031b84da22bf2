#include "runtime/backends.h"

#include "backend/cpu/cpu_backend.h"
#ifdef HLAT_HAVE_CUDA
#include "backend/cuda/cuda_backend.h"
#include "base/machine.h"
#endif

namespace hlat {

namespace {

#ifdef HLAT_HAVE_CUDA
GpuChoice gpus_here() {
  const CudaAnswer answer = ask_cuda();
  if (answer.count == 0) return {.usable = {}, .refused = why_no_gpus(answer)};
  std::vector<GpuFacts> gpus;
  for (int i = 0; i < answer.count; ++i) gpus.push_back(gpu_facts(i));
  return choose_gpus(gpus, cuda_code());
}

std::unique_ptr<Backend> make_cuda(const DeviceConfig& device, int index) {
  return std::make_unique<CudaBackend>(CudaOptions{.device = index, .cache_dir = user_cache_dir(), .deterministic = device.deterministic});
}
#else
GpuChoice gpus_here() { return {}; }
std::unique_ptr<Backend> make_cuda(const DeviceConfig& /*device*/, int /*index*/) { return nullptr; }
#endif

}  // namespace

std::optional<int> pick_gpu(const std::string& asked, const GpuChoice& gpus, int local_rank) {
  if (asked == "cpu") return {};
  if (!gpus.usable.empty()) return gpus.usable[static_cast<size_t>(local_rank) % gpus.usable.size()];
  if (asked != "cuda") return {};
#ifndef HLAT_HAVE_CUDA
  if (gpus.refused.empty()) throw UsageError("device.backend = cuda: this hlat was built without CUDA");
#endif
  throw UsageError("device.backend = cuda: " + (gpus.refused.empty() ? "no GPU that a CUDA driver gives access to" : gpus.refused));
}

size_t usable_gpus() { return gpus_here().usable.size(); }

std::unique_ptr<Backend> make_backend(const DeviceConfig& device, const Place& place) {
  const GpuChoice gpus = device.backend == "cpu" ? GpuChoice{} : gpus_here();
  if (const auto gpu = pick_gpu(device.backend, gpus, place.local_rank)) return make_cuda(device, *gpu);
  const int threads = device.threads > 0 ? static_cast<int>(device.threads) : place.threads;
  return std::make_unique<CpuBackend>(CpuOptions{.threads = threads, .isa = device.isa, .why_not_gpu = gpus.refused});
}

}  // namespace hlat
