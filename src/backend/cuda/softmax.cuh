// The running softmax of a row: a maximum and the sum of exponentials relative to it, merged over threads in a fixed order.
#pragma once

#include "backend/cuda/device.cuh"

namespace hlat {

// m: maximum, s: sum of exp(x - m). Nothing yet: m = -inf, s = 0.
struct Softmax {
  float m, s;
};

// exp(-inf - -inf) would be NaN: an empty side keeps the sum at 0.
__device__ inline float rescale(const Softmax& a, float m) { return a.s == 0 ? 0 : a.s * exp_nonpositive(a.m - m); }

__device__ inline Softmax merge(const Softmax& a, const Softmax& b) {
  const float m = fmaxf(a.m, b.m);
  return {m, rescale(a, m) + rescale(b, m)};
}

template <int N>
__device__ inline void take(Softmax& a, const float (&v)[N]) {
  float m = v[0];
#pragma unroll
  for (int j = 1; j < N; ++j) m = fmaxf(m, v[j]);
  m = fmaxf(m, a.m);
  if (m == -INFINITY) return;  // nothing but -inf so far
  if (m > a.m) {
    a.s = rescale(a, m);
    a.m = m;
  }
#pragma unroll
  for (int j = 0; j < N; ++j) a.s += exp_nonpositive(v[j] - m);
}

__device__ inline Softmax merge_block(Softmax mine, Softmax* shared) {
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const auto fold = [&] {
#pragma unroll
    for (int d = kWarp / 2; d > 0; d /= 2)
      mine = merge(mine, {__shfl_xor_sync(0xffffffffu, mine.m, d), __shfl_xor_sync(0xffffffffu, mine.s, d)});
  };
  fold();
  if (lane == 0) shared[warp] = mine;
  __syncthreads();
  mine = lane < warps ? shared[lane] : Softmax{-INFINITY, 0};
  fold();
  return mine;
}

}  // namespace hlat
