// One matmul as cuBLASLt sees it, and the search for its algorithm.
// cuBLASLt is column-major: our row-major c = op(a) op(b) is its c^T = op(b)^T op(a)^T, so our b is its first operand. For FP8, where our b
// is transposed, that is its form TN, the only one that Hopper has.
#pragma once

#include <cstring>
#include <optional>
#include <string>

#include "backend/cuda/matmul/cublaslt.h"
#include "backend/cuda/matmul/matmul_choices.h"
#include "backend/cuda/matmul/matmul_key.h"
#include "ops/ops.h"

namespace hlat {

struct MatmulOperands {
  Tensor c, a, b;
  void* workspace;
  size_t workspace_bytes;
  // Of FP8: on the device, what the values of a and of b are multiplied by; and whether sums stay in the tensor cores.
  const float *unscale_a = nullptr, *unscale_b = nullptr;
  bool fast_sums = false;
};

class MatmulProblem {
 public:
  MatmulProblem(cublasLtHandle_t handle, cudaStream_t stream, const MatmulShape& s, const MatmulOperands& x);
  ~MatmulProblem();
  MatmulProblem(const MatmulProblem&) = delete;
  MatmulProblem& operator=(const MatmulProblem&) = delete;

  // d = op(a) op(b) (+ c with accumulate); d has the layout of c. The status says whether it was launched.
  cublasStatus_t call(const cublasLtMatmulAlgo_t& algo, void* d, const MatmulOperands& x) const;
  // The algorithms the library proposes, its favourite first, with deterministic sums only.
  struct Candidates {
    std::vector<MatmulChoice> choices;
    cublasStatus_t failed = CUBLAS_STATUS_SUCCESS;  // of a search that has failed, and did not just find nothing
  };
  Candidates candidates(size_t workspace) const;
  // Variations of a choice that the library's proposals leave out.
  std::vector<MatmulChoice> neighbours(const MatmulChoice& choice, size_t workspace) const;
  bool accepts(MatmulChoice& choice, size_t workspace) const;  // sets the workspace it needs

 private:
  void set_scales(const MatmulOperands& x) const;

  const CublasLt& lt_;
  cublasLtHandle_t handle_;
  cudaStream_t stream_;
  bool accumulate_, fp8_;
  std::array<uint32_t, 3> alignment_{};  // bytes, of c, a, b
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
};

inline cublasLtMatmulAlgo_t algo_of(const MatmulChoice& choice) {
  cublasLtMatmulAlgo_t algo;
  static_assert(sizeof(algo) == sizeof(choice.algo));
  std::memcpy(&algo, choice.algo.data(), sizeof(algo));
  return algo;
}

std::string describe(const MatmulChoice& choice);

struct Measured {
  std::optional<MatmulChoice> best;               // none: all are refused
  int64_t failures = 0;                           // candidates that failed and were not just refused, say for want of memory
  cublasStatus_t failed = CUBLAS_STATUS_SUCCESS;  // the first of them
};
// Times the candidates on the operands, the library's favourite first: it is the best one too where none runs and not all are refused.
// c is only written when the matmul overwrites it anyway.
Measured measure(const std::vector<MatmulChoice>& candidates, const MatmulProblem& problem, const MatmulOperands& x, bool accumulate,
                 cudaStream_t stream);

}  // namespace hlat
