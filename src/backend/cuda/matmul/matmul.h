// Matmul through cuBLASLt: c = op(a) op(b), or c += ..., row-major with strided rows, sums in f32; f32 operands are multiplied in f32
// (no tf32). The algorithm of a shape is measured when the shape first comes, on the operands of that call and without harm to c, and
// remembered on disk (matmul_choices.h); a run that is continued brings its own, which go before both. Only algorithms whose sums have one
// order are admitted, so equal calls give equal bits.
// Products of FP8 (ops/fp8.h) go the same way, on GPUs that have them.
// What cuBLASLt refuses (odd alignments) goes to a plain kernel, with a note unless it is small. For inference nothing is measured, since
// it meets many shapes, each seldom: cuBLASLt's first proposal is taken.
//
// Not for concurrent use. The first call of a shape waits for the device and, with accumulate, takes memory for a second c for a
// moment; later calls do neither and can be captured. A shape that is first met inside a capture is not measured.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "ops/kernel_choices.h"
#include "ops/ops.h"

namespace hlat {

class CudaMatmul {
 public:
  enum class Use { training, inference };
  // cache_dir "": nothing is measured, cuBLASLt's own choice is taken. A choice that is forgotten would not repeat.
  CudaMatmul(cudaStream_t stream, std::string cache_dir, Use use = Use::training);
  ~CudaMatmul();
  CudaMatmul(const CudaMatmul&) = delete;
  CudaMatmul& operator=(const CudaMatmul&) = delete;

  size_t scratch(const MatmulShape& s) const;
  void run(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor scratch);
  // c = residual + op(a) op(b); s says accumulate, the residual is laid out as c.
  void run_add(Tensor c, Tensor a, Tensor b, Tensor residual, const MatmulShape& s, Tensor scratch);

  // c = a b^T, with the inverses of the scales; residual as above, or c: s says whether either is added. Not for two operands of E5M2.
  void run_fp8(Tensor c, const Fp8Operand& a, const Fp8Operand& b, Tensor residual, const MatmulShape& s, bool fast_sums, Tensor scratch);

  std::string describe() const;                // "cuBLASLt 13.1.0"
  const std::string& gpu() const;              // "NVIDIA H200, 132 multiprocessors": GPUs of one kind can use each other's choices
  std::string library() const;                 // as choices name it
  KernelsByLibrary kernels() const;            // of all shapes so far, and those that were given
  void use(const KernelsByLibrary& recorded);  // from now on, for shapes that came already too
  std::vector<std::string> take_notes();       // since the last call: shapes that the record lacks, what was refused, failed or is slow
  void note_once(const std::string& line);     // among them, the first time
  // How the latest call was computed: "algorithm 66, tile 21, ...", "plain kernel"; for benchmarks.
  const std::string& latest() const;
  int64_t measured() const;  // shapes this object has measured

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace hlat
