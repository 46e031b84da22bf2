// Matmul through oneDNN. bf16 operands go in as they are where the CPU multiplies bf16, and are widened to f32 first
// where it does not (oneDNN's emulation is several times slower than its f32 kernel).
#pragma once

#include <memory>

#include "backend/cpu/kernels/table.h"
#include "base/parallel.h"
#include "ops/ops.h"

namespace hlat {

class CpuMatmul {
 public:
  CpuMatmul(const CpuKernels& kernels, const Threads& threads, bool native_bf16);
  ~CpuMatmul();

  size_t scratch(const MatmulShape& s) const;
  void run(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch);

 private:
  struct Library;
  Tensor widened(Tensor t, std::byte*& cursor) const;

  const CpuKernels& kernels_;
  const Threads& threads_;
  bool native_bf16_;
  std::unique_ptr<Library> library_;
};

}  // namespace hlat
