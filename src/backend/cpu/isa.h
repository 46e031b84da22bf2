// Which instruction sets this CPU has and which kernel table to use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/kernels/table.h"

namespace hlat {

std::vector<std::string> available_isas();               // best first; "generic" is always last
const CpuKernels& select_kernels(std::string_view isa);  // "auto" or a name; Error when this CPU lacks it

// True when oneDNN multiplies bf16 natively here (AVX512_BF16 or AMX); otherwise matmul widens bf16 operands to f32. The own
// product of the "amx" kernels goes before both.
bool has_native_bf16();
std::string onednn_version();  // "oneDNN 2.6.0"
std::string onednn_isa();      // "avx512_core_amx": what it takes of this CPU's
// "avx512 kernels, oneDNN avx512_core_amx, native bf16" for the log.
std::string describe_cpu(const CpuKernels& kernels);

}  // namespace hlat
