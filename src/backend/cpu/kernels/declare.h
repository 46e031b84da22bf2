// Functions the kernel files of one instruction set give to their table.
#pragma once

#include "backend/cpu/kernels/table.h"

namespace hlat::HLAT_ISA {
void fill_elementwise(CpuKernels& k);
void fill_norm(CpuKernels& k);
void fill_loss(CpuKernels& k);
void fill_attention(CpuKernels& k);
void fill_key_scan(CpuKernels& k);
void fill_row_product(CpuKernels& k);
void fill_adamw(CpuKernels& k);
void fill_checksum(CpuKernels& k);
void fill_largest(CpuKernels& k);
// These replace bf16 functions of the others; only where the set has them.
void fill_amx_gemm(CpuKernels& k);
void fill_amx_attention(CpuKernels& k);
void fill_amx_attention_bwd(CpuKernels& k);
}  // namespace hlat::HLAT_ISA
