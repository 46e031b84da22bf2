// Tiles of 32 x 32 results; each of 256 threads keeps 4 of them. Operands pass through shared memory as f32, k in order.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "backend/cuda/matmul/matmul_plain.h"

namespace hlat {

namespace {

constexpr int kSide = 32;

// Element (i, j) lies at i * row + j * col.
template <class T>
struct Matrix {
  T* data;
  int64_t row, col;
  __device__ T& at(int64_t i, int64_t j) const { return data[i * row + j * col]; }
};

__device__ inline float load(float x) { return x; }
__device__ inline float load(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float load(__nv_fp8_e4m3 x) { return static_cast<float>(x); }
__device__ inline float load(__nv_fp8_e5m2 x) { return static_cast<float>(x); }
__device__ inline void store(float& y, float x) { y = x; }
__device__ inline void store(__nv_bfloat16& y, float x) { y = __float2bfloat16_rn(x); }

template <class A, class B, class Out>
__global__ void plain(Matrix<Out> c, Matrix<const A> a, Matrix<const B> b, int64_t m, int64_t n, int64_t k, bool accumulate,
                      const float* unscale_a, const float* unscale_b) {
  __shared__ float as[kSide][kSide + 1], bs[kSide][kSide + 1];
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;  // y in [0, 8)
  const int64_t tiles = (n + kSide - 1) / kSide;
  const int64_t i0 = blockIdx.x / tiles * kSide, j0 = blockIdx.x % tiles * kSide;
  float sum[4] = {};
  for (int64_t k0 = 0; k0 < k; k0 += kSide) {
    for (int r = y; r < kSide; r += 8) {
      as[r][x] = i0 + r < m && k0 + x < k ? load(a.at(i0 + r, k0 + x)) : 0.0f;
      bs[r][x] = k0 + r < k && j0 + x < n ? load(b.at(k0 + r, j0 + x)) : 0.0f;
    }
    __syncthreads();
    for (int e = 0; e < kSide; ++e)
#pragma unroll
      for (int r = 0; r < 4; ++r) sum[r] += as[y + 8 * r][e] * bs[e][x];
    __syncthreads();
  }
  if constexpr (sizeof(A) == 1) {
    const float unscale = *unscale_a * *unscale_b;
#pragma unroll
    for (int r = 0; r < 4; ++r) sum[r] *= unscale;
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int64_t i = i0 + y + 8 * r, j = j0 + x;
    if (i >= m || j >= n) continue;
    Out& out = c.at(i, j);
    store(out, accumulate ? load(out) + sum[r] : sum[r]);
  }
}

template <class T>
Matrix<const T> operand(const void* p, int64_t ld, bool transposed) {
  const auto* data = static_cast<const T*>(p);
  return transposed ? Matrix<const T>{data, 1, ld} : Matrix<const T>{data, ld, 1};
}

template <class A, class B, class Out>
cudaError_t launch(cudaStream_t stream, const PlainMatmul& x) {
  const int64_t blocks = ((x.m + kSide - 1) / kSide) * ((x.n + kSide - 1) / kSide);
  plain<A, B, Out><<<static_cast<unsigned>(blocks), 256, 0, stream>>>({static_cast<Out*>(x.c), x.ldc, 1}, operand<A>(x.a, x.lda, x.trans_a),
                                                                      operand<B>(x.b, x.ldb, x.trans_b), x.m, x.n, x.k, x.accumulate,
                                                                      x.unscale_a, x.unscale_b);
  return cudaGetLastError();
}

template <class A, class B>
cudaError_t launch_to(cudaStream_t stream, const PlainMatmul& x) {
  return x.c_type == PlainType::bf16 ? launch<A, B, __nv_bfloat16>(stream, x) : launch<A, B, float>(stream, x);
}

}  // namespace

cudaError_t plain_matmul(cudaStream_t stream, const PlainMatmul& x) {
  using E4 = __nv_fp8_e4m3;
  using E5 = __nv_fp8_e5m2;
  if (x.a_type == PlainType::f32) return launch<float, float, float>(stream, x);
  if (x.a_type == PlainType::bf16) return launch_to<__nv_bfloat16, __nv_bfloat16>(stream, x);
  if (x.a_type == PlainType::e5m2) return x.b_type == PlainType::e4m3 ? launch_to<E5, E4>(stream, x) : cudaErrorInvalidValue;
  return x.b_type == PlainType::e5m2 ? launch_to<E4, E5>(stream, x) : launch_to<E4, E4>(stream, x);
}

}  // namespace hlat
