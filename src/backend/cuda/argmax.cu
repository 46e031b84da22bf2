// The largest logit of a row and where it stands: one block per row, every logit read once. Equal logits: the lowest index, so the order
// of the fold does not matter. A NaN is never the largest; a row of nothing else gives its first index and NaN.
#include "backend/cuda/device.cuh"

namespace hlat {

namespace {

struct Best {
  float value;
  int index;  // kNone: nothing yet
};
constexpr int kNone = 0x7fffffff;

__device__ void take(Best& best, float value, int index) {
  if (value > best.value || (value == best.value && index < best.index)) best = {value, index};
}

__device__ void fold_warp(Best& best) {
#pragma unroll
  for (int d = kWarp / 2; d > 0; d /= 2)
    take(best, __shfl_xor_sync(0xffffffffu, best.value, d), __shfl_xor_sync(0xffffffffu, best.index, d));
}

template <class T, int N>
__global__ void argmax_kernel(int32_t* ids, float* values, const T* logits, int64_t width, int64_t first) {
  __shared__ Best shared[kWarp];
  const T* x = logits + blockIdx.x * width;
  Best best{-INFINITY, kNone};
#pragma unroll 4
  for (int64_t i = int64_t{threadIdx.x} * N; i < width; i += int64_t{blockDim.x} * N) {
    float v[N];
    load(v, x + i);
#pragma unroll
    for (int j = 0; j < N; ++j) take(best, v[j], static_cast<int>(i) + j);
  }
  fold_warp(best);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = best;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  best = threadIdx.x < blockDim.x / kWarp ? shared[threadIdx.x] : Best{-INFINITY, kNone};
  fold_warp(best);
  if (threadIdx.x != 0) return;
  const bool none = best.index == kNone;
  ids[blockIdx.x] = static_cast<int32_t>(first + (none ? 0 : best.index));
  values[blockIdx.x] = none ? NAN : best.value;
}

}  // namespace

void CudaOps::do_argmax(Tensor ids, Tensor values, Tensor logits, int64_t first) {
  const int64_t width = logits.dim(1);
  with_type(logits.dtype, [&](auto t) {
    using T = decltype(t);
    with_width<kVector<T>>(width % kVector<T> == 0 && aligned({logits.data}), [&](auto n) {
      launch(argmax_kernel<T, n()>, grid_of(logits.dim(0), 1), row_threads(width / n(), 4), stream(), ids.as<int32_t>(), values.as<float>(),
             logits.as<T>(), width, first);
    });
  });
}

}  // namespace hlat
