#include "backend/cpu/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "base/error.h"

namespace hlat {

namespace {

// Tiles and their bf16 product, by CPUID: not every compiler knows these names in __builtin_cpu_supports. The kernel gives the
// tile registers' memory to a process that asks, and refuses where it does not know them.
bool has_tiles() {
  constexpr unsigned kTile = 1u << 24, kBf16 = 1u << 22;      // leaf 7, EDX
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kTile) == 0 || (d & kBf16) == 0) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

std::vector<std::string> available_isas() {
  __builtin_cpu_init();
  std::vector<std::string> isas;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool amx = avx512 && __builtin_cpu_supports("avx512bf16") && has_tiles();
  if (amx) isas.emplace_back("amx");
  if (avx512) isas.emplace_back("avx512");
  if (avx2) isas.emplace_back("avx2");
  isas.emplace_back("generic");
  return isas;
}

const CpuKernels& select_kernels(std::string_view isa) {
  const auto isas = available_isas();
  const std::string name = isa == "auto" ? isas.front() : std::string(isa);
  for (const auto& have : isas) {
    if (have != name) continue;
    if (name == "amx") return amx::kernels();
    if (name == "avx512") return avx512::kernels();
    if (name == "avx2") return avx2::kernels();
    return generic::kernels();
  }
  throw UsageError(fmt::format("device.isa = {}: this CPU has only {}", isa, fmt::join(isas, ", ")));
}

bool has_native_bf16() {
  const auto isa = dnnl::get_effective_cpu_isa();
  return isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_amx;
}

std::string onednn_version() {
  const auto* version = dnnl::version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

std::string onednn_isa() {
  const auto isa = dnnl::get_effective_cpu_isa();
  return isa == dnnl::cpu_isa::avx512_core_amx    ? "avx512_core_amx"
         : isa == dnnl::cpu_isa::avx512_core_bf16 ? "avx512_core_bf16"
         : isa == dnnl::cpu_isa::avx512_core_vnni ? "avx512_core_vnni"
         : isa == dnnl::cpu_isa::avx512_core      ? "avx512_core"
         : isa == dnnl::cpu_isa::avx2_vnni        ? "avx2_vnni"
         : isa == dnnl::cpu_isa::avx2             ? "avx2"
                                                  : "below avx2";
}

std::string describe_cpu(const CpuKernels& kernels) {
  const char* bf16 = kernels.gemm_block != nullptr ? "own" : has_native_bf16() ? "native" : "widened to f32";
  return fmt::format("own kernels {}, oneDNN {}, bf16 matmul {}", kernels.name, onednn_isa(), bf16);
}

}  // namespace hlat
