#include "backend/cpu/isa.h"

#include <oneapi/dnnl/dnnl.hpp>

#include "base/error.h"

namespace hlat {

std::vector<std::string> available_isas() {
  __builtin_cpu_init();
  std::vector<std::string> isas;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
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

std::string describe_cpu(const CpuKernels& kernels) {
  const auto isa = dnnl::get_effective_cpu_isa();
  const char* name = isa == dnnl::cpu_isa::avx512_core_amx    ? "avx512_core_amx"
                     : isa == dnnl::cpu_isa::avx512_core_bf16 ? "avx512_core_bf16"
                     : isa == dnnl::cpu_isa::avx512_core_vnni ? "avx512_core_vnni"
                     : isa == dnnl::cpu_isa::avx512_core      ? "avx512_core"
                     : isa == dnnl::cpu_isa::avx2_vnni        ? "avx2_vnni"
                     : isa == dnnl::cpu_isa::avx2             ? "avx2"
                                                              : "below avx2";
  return fmt::format("own kernels {}, oneDNN {}, bf16 matmul {}", kernels.name, name, has_native_bf16() ? "native" : "widened to f32");
}

}  // namespace hlat
