// The bf16 product on AMX tiles: cuts C = op(A) op(B) into chunks whose operands are packed once and blocks for threads.
#pragma once

#include "backend/cpu/kernels/table.h"
#include "base/threads.h"
#include "ops/ops.h"

namespace hlat {

size_t amx_matmul_scratch(const MatmulShape& s, int threads);
// c, a and b as in Ops::matmul; scratch has amx_matmul_scratch bytes. The result does not depend on the number of threads.
void amx_matmul(const CpuKernels& kernels, const Threads& threads, Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch);

}  // namespace hlat
