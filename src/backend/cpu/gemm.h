// The own f32 matrix product: blocks, packing and threads around the kernels' gemm. Takes bf16 operands as well
// (packing widens them) and is exact about its scratch. Results do not depend on the number of threads.
#pragma once

#include "backend/cpu/kernels/table.h"
#include "base/parallel.h"
#include "ops/ops.h"

namespace hlat {

class CpuGemm {
 public:
  CpuGemm(const CpuKernels& kernels, const Threads& threads) : kernels_(kernels), threads_(threads) {}

  size_t scratch(const MatmulShape& s) const;  // bytes
  void run(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch) const;

 private:
  struct Blocks;  // how a shape is cut and where its parts lie in scratch
  void pack_b(const Tensor& b, const MatmulShape& s, const Blocks& cut, int64_t first_col, int64_t cols, int64_t first_k, int64_t depth, float* base) const;
  void multiply(float* c, int64_t ldc, const Tensor& a, const MatmulShape& s, const Blocks& cut, int64_t cols, int64_t first_k, int64_t depth,
                float* base) const;

  const CpuKernels& kernels_;
  const Threads& threads_;
};

}  // namespace hlat
