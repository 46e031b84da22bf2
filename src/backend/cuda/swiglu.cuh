// SwiGLU of N elements: y = u g s with s = sigmoid(g), and its gradients with d silu(g) = s (1 + g (1 - s)).
#pragma once

#include "backend/cuda/device.cuh"

namespace hlat {

__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + expf(-x)); }

// u becomes y.
template <int N>
__device__ inline void swiglu(float (&u)[N], const float (&g)[N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) u[j] *= g[j] * sigmoid(g[j]);
}

// u becomes dg, and d, which is dy, becomes du.
template <int N>
__device__ inline void swiglu_bwd(float (&u)[N], float (&d)[N], const float (&g)[N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const float s = sigmoid(g[j]);
    u[j] = d[j] * u[j] * (s * (1.0f + g[j] * (1.0f - s)));
    d[j] *= g[j] * s;
  }
}

}  // namespace hlat
