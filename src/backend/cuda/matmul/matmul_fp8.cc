// Products of FP8: cuBLASLt's where the GPU has them (sm_89 and later), else both operands become bf16, exactly, and are multiplied as
// such. Which of the two depends on the GPU alone, so that scratch is planned.
#include "backend/cuda/cuda_ops.h"
#include "ops/gpu_scratch.h"

namespace hlat {

size_t CudaOps::matmul_fp8_scratch(const MatmulShape& s) const { return gpu_matmul_fp8_scratch(context_->gpu, s).total; }

void CudaOps::do_matmul_fp8(Tensor c, const Fp8Operand& a, const Fp8Operand& b, Tensor residual, const MatmulShape& s, bool fast_sums,
                            Tensor scratch) {
  HLAT_CHECK(s.a == DType::f8e4m3 || s.b == DType::f8e4m3,
             "matmul_fp8: {} x {}: tensor cores multiply E5M2 with E4M3 only, and one of two operands has to be that", name_of(s.a),
             name_of(s.b));
  MatmulShape sum = s;
  sum.accumulate = s.accumulate || residual.defined();
  if (!residual.defined()) residual = c;
  if (multiplies_fp8(context_->gpu)) return matmul_.run_fp8(c, a, b, residual, sum, fast_sums, scratch);
  matmul_.note_once(context_->gpu.name + " has no products of FP8: operands become bf16 first, which saves no time");
  const GpuFp8Scratch parts = gpu_matmul_fp8_scratch(context_->gpu, s);
  auto* const room = scratch.as<std::byte>();
  const Tensor wide_a = Tensor::contiguous(room, DType::bf16, {s.m, s.k});
  const Tensor wide_b = Tensor::contiguous(room + parts.a, DType::bf16, {s.n, s.k});
  const Tensor workspace =
      Tensor::contiguous(room + parts.a + parts.b, DType::i32, {static_cast<int64_t>(parts.product / sizeof(int32_t))});
  do_dequantize(wide_a, a.values, a.scale);
  do_dequantize(wide_b, b.values, b.scale);
  sum.a = sum.b = DType::bf16;
  matmul_.run_add(c, wide_a, wide_b, residual, sum, workspace);
}

}  // namespace hlat
