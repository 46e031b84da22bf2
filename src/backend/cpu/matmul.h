// Matmul: oneDNN's sgemm for f32. bf16 goes to the own tile product where the kernels have it (AMX), to oneDNN's matmul
// primitive on other CPUs that multiply bf16, and is widened to f32 first elsewhere, since oneDNN's emulation is several
// times slower than its f32 kernel (docs/adr/0002). Where it is asked for, products X W^T with few rows of X, those
// of decoding, are read off W by vectors.
#pragma once

#include <memory>

#include "backend/cpu/kernels/table.h"
#include "base/threads.h"
#include "ops/ops.h"

namespace hlat {

class CpuMatmul {
 public:
  CpuMatmul(const CpuKernels& kernels, const Threads& threads, bool native_bf16, bool few_rows);
  ~CpuMatmul();

  size_t scratch(const MatmulShape& s) const;
  void run(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch);

 private:
  struct Library;
  bool has_few_rows(const MatmulShape& s) const;
  void run_few_rows(Tensor c, Tensor a, Tensor b, const MatmulShape& s) const;
  void run_native(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch);
  void run_widened(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch);
  Tensor widened(Tensor t, std::byte*& cursor) const;

  const CpuKernels& kernels_;
  const Threads& threads_;
  bool native_bf16_, few_rows_;
  std::unique_ptr<Library> library_;
};

}  // namespace hlat
