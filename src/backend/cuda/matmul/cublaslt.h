// cuBLASLt's functions, found at run time: libcublasLt is half a gigabyte, and the program must start without it.
// The members have the names of the functions less their prefix cublasLt.
#pragma once

#include <cublasLt.h>

#include "base/error.h"

namespace hlat {

struct CublasLt {
#define HLAT_CUBLASLT_FUNCTIONS(X) \
  X(Create)                        \
  X(Destroy)                       \
  X(GetVersion)                    \
  X(GetStatusName)                 \
  X(Matmul)                        \
  X(MatmulDescCreate)              \
  X(MatmulDescDestroy)             \
  X(MatmulDescSetAttribute)        \
  X(MatrixLayoutCreate)            \
  X(MatrixLayoutDestroy)           \
  X(MatmulPreferenceCreate)        \
  X(MatmulPreferenceDestroy)       \
  X(MatmulPreferenceSetAttribute)  \
  X(MatmulAlgoGetHeuristic)        \
  X(MatmulAlgoCheck)               \
  X(MatmulAlgoConfigGetAttribute)  \
  X(MatmulAlgoConfigSetAttribute)
// A declared name cannot stand in parentheses: NOLINTNEXTLINE(bugprone-macro-parentheses)
#define HLAT_CUBLASLT_MEMBER(name) decltype(&cublasLt##name) name = nullptr;
  HLAT_CUBLASLT_FUNCTIONS(HLAT_CUBLASLT_MEMBER)
#undef HLAT_CUBLASLT_MEMBER

  // Loads the library at the first call; Error when it is not there.
  static const CublasLt& get();
};

// That the library does not compute a product so, as opposed to a failure.
inline bool is_refusal(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE || status == CUBLAS_STATUS_ARCH_MISMATCH;
}

inline void cublaslt_check(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail("cuBLASLt: {} (status {}) in {}, {}:{}", CublasLt::get().GetStatusName(status), static_cast<int>(status), call, file, line);
}

}  // namespace hlat

#define HLAT_CUBLASLT(call) ::hlat::cublaslt_check((call), #call, __FILE__, __LINE__)
