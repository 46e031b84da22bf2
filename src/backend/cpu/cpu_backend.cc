#include "backend/cpu/cpu_backend.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/memory_limits.h"

namespace hlat {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr const char* kCpu = "CPU";  // as the kind of a device
constexpr const char* kInstructionSet = "instruction set";

size_t block_size(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage + kHugePage; }

}  // namespace

std::unique_ptr<Ops> CpuBackend::make_inference_ops(Region& temp) {
  CpuOptions options = options_;
  options.few_rows = true;
  return std::make_unique<CpuOps>(temp, options);
}

CpuDevice::~CpuDevice() {
  for (const auto& [p, bytes] : blocks_) munmap(p, bytes);
}

// Memory is mapped with room to start on a huge page; matrix products touch many rows and would miss in the TLB else.
std::byte* CpuDevice::allocate(size_t bytes) {
  const size_t size = block_size(bytes);
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) fail<UsageError>("cannot allocate {} bytes: {}", bytes, std::strerror(errno));
  madvise(p, size, MADV_HUGEPAGE);  // a refusal costs speed only
  auto* base = static_cast<std::byte*>(p);
  const size_t skip = (kHugePage - reinterpret_cast<uintptr_t>(base) % kHugePage) % kHugePage;
  if (skip > 0) munmap(base, skip);
  std::byte* start = base + skip;
  blocks_[start] = size - skip;
  return start;
}

void CpuDevice::free(std::byte* p) {
  const auto block = blocks_.find(p);
  HLAT_CHECK(block != blocks_.end(), "free of {}", static_cast<void*>(p));
  munmap(p, block->second);
  blocks_.erase(block);
}

void CpuDevice::upload(Tensor dst, const void* host) { std::memcpy(dst.data, host, dst.bytes()); }

void CpuDevice::download(void* host, Tensor src) { std::memcpy(host, src.data, src.bytes()); }

size_t CpuDevice::memory_available() const { return host_memory_available(); }

std::string CpuBackend::describe() const {
  return fmt::format("CPU, {} thread{}: {}", options_.threads, options_.threads == 1 ? "" : "s",
                     describe_cpu(select_kernels(options_.isa))) +
         (options_.why_not_gpu.empty() ? "" : "\nno GPU is used: " + options_.why_not_gpu);
}

KernelsByLibrary CpuBackend::kernels() const {
  return {{std::string(kOwnKernels), {{kInstructionSet, select_kernels(options_.isa).name}}},
          {onednn_version(), {{kInstructionSet, onednn_isa()}, {"threads", std::to_string(options_.threads)}}}};
}

std::string CpuBackend::kernel_choices() const { return kernel_choices_text({{kCpu, kernels()}}); }

std::vector<std::string> CpuBackend::use_kernel_choices(const std::string& json) {
  KernelChoices recorded = parse_kernel_choices(json);
  std::vector<std::string> libraries, differences;
  for (const auto& [library, calls] : kernels()) {
    libraries.push_back(library);
    for (const auto& [call, now] : calls) {
      KernelsByCall& before = recorded[kCpu][library];
      const auto found = before.find(call);
      if (found == before.end() || found->second == now) continue;
      const auto isas = available_isas();
      const bool possible = library == kOwnKernels && std::find(isas.begin(), isas.end(), found->second) != isas.end();
      differences.push_back(fmt::format("{}: {} {} in the checkpoint's run, {} in this one; results can differ in their last bits{}",
                                        library, call, found->second, now,
                                        possible ? ", device.isa=" + found->second + " repeats them" : ""));
      before.erase(found);
    }
    if (recorded[kCpu][library].empty()) recorded[kCpu].erase(library);
  }
  std::vector<std::string> lines = fitting_choices(recorded, kCpu, libraries).lines;
  lines.insert(lines.end(), differences.begin(), differences.end());
  return lines;
}

}  // namespace hlat
