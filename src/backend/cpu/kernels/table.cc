// Assembles the kernel table of one instruction set.
#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/simd.h"

#define HLAT_TEXT_(x) #x
#define HLAT_TEXT(x) HLAT_TEXT_(x)

namespace hlat::HLAT_ISA {

const CpuKernels& kernels() {
  static const CpuKernels table = [] {
    CpuKernels k{};
    k.name = HLAT_TEXT(HLAT_ISA);
    fill_elementwise(k);
    fill_norm(k);
    fill_loss(k);
    fill_attention(k);
    fill_key_scan(k);
    fill_row_product(k);
    fill_adamw(k);
    fill_checksum(k);
    fill_largest(k);
#if defined(HLAT_AMX)
    fill_amx_gemm(k);
    fill_amx_attention(k);
    fill_amx_attention_bwd(k);
#endif
    return k;
  }();
  return table;
}

}  // namespace hlat::HLAT_ISA
