// The largest logit of a row and where it stands: one block per row, every logit read once. A candidate is one number, the logit's order
// above the complement of its index, so the largest number is what is looked for and the order of the fold does not matter.
#include "backend/cuda/device.cuh"

namespace hlat {

namespace {

// Numbers in the order of floats, NaN above all; both zeros are one.
__device__ uint32_t order_of(float x) {
  if (x != x) return 0xffffffffu;
  const uint32_t bits = __float_as_uint(x + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ float value_of(uint32_t order) {
  return order == 0xffffffffu ? NAN : __uint_as_float((order & 0x80000000u) != 0 ? order & 0x7fffffffu : ~order);
}

template <class T, int N>
__global__ void argmax_kernel(int32_t* ids, float* values, const T* logits, int64_t width, int64_t first) {
  __shared__ unsigned long long shared[kWarp];
  const T* x = logits + blockIdx.x * width;
  unsigned long long best = 0;
#pragma unroll 4
  for (int64_t i = int64_t{threadIdx.x} * N; i < width; i += int64_t{blockDim.x} * N) {
    float v[N];
    load(v, x + i);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const uint32_t index = static_cast<uint32_t>(i) + j;
      best = max(best, static_cast<unsigned long long>(order_of(v[j])) << 32 | ~index);
    }
  }
  best = block_fold(best, 0ULL, shared, [](unsigned long long a, unsigned long long b) { return max(a, b); });
  if (threadIdx.x != 0) return;
  ids[blockIdx.x] = static_cast<int32_t>(first + ~static_cast<uint32_t>(best));
  values[blockIdx.x] = value_of(static_cast<uint32_t>(best >> 32));
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
