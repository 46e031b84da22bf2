// Errors of CUDA calls. HLAT_CUDA(call) throws Error with CUDA's words, the call, file and line; check_launch() follows a kernel
// launch at that file and line, and reports only what is wrong with the launch itself: faults inside a kernel surface at a later call.
#pragma once

#include <cuda_runtime_api.h>

#include "base/error.h"

namespace hlat {

inline void cuda_check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears it, so that a later launch is not blamed
  fail("CUDA: {} ({}) in {}, {}:{}", cudaGetErrorString(status), cudaGetErrorName(status), call, file, line);
}

inline void check_launch(const char* file, int line) { cuda_check(cudaGetLastError(), "a kernel launch", file, line); }

}  // namespace hlat

#define HLAT_CUDA(call) ::hlat::cuda_check((call), #call, __FILE__, __LINE__)
