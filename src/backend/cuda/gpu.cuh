// What kernel files need from the GPU compiler itself: launches and the few instructions C++ has no word for.
// Every launch goes through launch(): one stream, no shared memory beyond what the kernel declares, errors checked;
// kernels of attention, which need more of it, through launch_shared().
#pragma once

#include <cstdint>

#include "backend/cuda/cuda_check.h"

namespace hlat {

// A stream as an argument of launch(), with the place of that call, which errors name.
struct LaunchStream {
  LaunchStream(cudaStream_t on, const char* from_file = __builtin_FILE(), int from_line = __builtin_LINE())
      : stream(on), file(from_file), line(from_line) {}
  cudaStream_t stream;
  const char* file;
  int line;
};

template <class... Params, class... Args>
void launch(void (*kernel)(Params...), dim3 grid, unsigned threads, LaunchStream on, Args... args) {
  kernel<<<grid, threads, 0, on.stream>>>(static_cast<Params>(args)...);
  check_launch(on.file, on.line);
}

template <class Params>
cudaError_t launch_shared(void (*kernel)(Params), int64_t blocks, unsigned threads, size_t bytes, cudaStream_t stream,
                          const Params& params) {
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (error != cudaSuccess) return error;
  kernel<<<static_cast<unsigned>(blocks), threads, bytes, stream>>>(params);
  return cudaGetLastError();
}

constexpr float kLog2e = 1.44269504088896341f;

// Two floats to bf16, to nearest even, `low` in the low half.
__device__ inline uint32_t pack_bf16(float low, float high) {
  uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

// 2^x to 2 ulp; results below the normal numbers are 0.
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The larger one; NaN where one is NaN.
__device__ inline float max_or_nan(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}

// To 2 ulp or so.
__device__ inline float sqrt_fast(float x) {
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace hlat
