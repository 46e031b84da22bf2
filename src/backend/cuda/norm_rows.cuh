// RMSNorm of rows that one warp holds in registers, P pieces of N elements per lane: no barrier between the passes over a row, and
// many rows under way on a multiprocessor. Formulas as in norm.cu, which keeps the wider rows.
#pragma once

#include "backend/cuda/device.cuh"

namespace hlat {

constexpr int kBlockRows = 4;  // warps of a block, a row each

__device__ inline float warp_sum(float mine) {
#pragma unroll
  for (int d = kWarp / 2; d > 0; d /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, d);
  return mine;
}

// Add: x + delta is rounded to T, stored to sum, and normalized from there. Without Put: rstd and sum alone.
template <class T, int N, int P, bool Add, bool Put>
__global__ void __launch_bounds__(kBlockRows* kWarp)
    rmsnorm_rows_kernel(T* sum, T* y, float* rstd, const T* x, const T* delta, const T* w, int64_t rows, int width, float eps) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t row = int64_t{blockIdx.x} * kBlockRows + threadIdx.x / kWarp;
  if (row >= rows) return;
  float keep[P][N], squares = 0;
  Raw<T, N> in[P], more[P], weight[P];
#pragma unroll
  for (int k = 0; k < P; ++k) {
    const int i = (k * kWarp + lane) * N;
    if (i >= width) continue;
    in[k].load(x + row * width + i);
    if constexpr (Add) more[k].load(delta + row * width + i);
    if constexpr (Put) weight[k].load(w + i);
  }
#pragma unroll
  for (int k = 0; k < P; ++k) {
    const int i = (k * kWarp + lane) * N;
    if (i >= width) continue;
    in[k].floats(keep[k]);
    if constexpr (Add) {
      float d[N];
      more[k].floats(d);
#pragma unroll
      for (int j = 0; j < N; ++j) keep[k][j] = widen(narrow<T>(keep[k][j] + d[j]));
      store(sum + row * width + i, keep[k]);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) squares += keep[k][j] * keep[k][j];
  }
  const float r = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(width) + eps);
  if (lane == 0) rstd[row] = r;
  if constexpr (Put) {
#pragma unroll
    for (int k = 0; k < P; ++k) {
      const int i = (k * kWarp + lane) * N;
      if (i >= width) continue;
      float out[N];
      weight[k].floats(out);
#pragma unroll
      for (int j = 0; j < N; ++j) out[j] = keep[k][j] * r * out[j];
      store(y + row * width + i, out);
    }
  }
}

// What a lane keeps of one row for the backward.
template <class T, int N, int P>
struct RowPieces {
  Raw<T, N> dy[P], x[P], old[P];
  float rstd;

  __device__ void load(const T* dy_row, const T* x_row, const T* old_row, const float* r, int lane, int width) {
#pragma unroll
    for (int k = 0; k < P; ++k) {
      const int i = (k * kWarp + lane) * N;
      if (i >= width) continue;
      dy[k].load(dy_row + i);
      x[k].load(x_row + i);
      if (old_row != nullptr) old[k].load(old_row + i);
    }
    rstd = *r;
  }
};

// Warps take rows in turn; the next row is loaded before the sum over this one. Row b of parts gets the dw of block b's rows.
template <class T, int N, int P>
__global__ void __launch_bounds__(kBlockRows* kWarp) rmsnorm_bwd_rows_kernel(T* dx, float* parts, const T* dy, const T* x, const T* w,
                                                                             const float* rstd, int64_t rows, int width, bool add_dx) {
  __shared__ float sums[kBlockRows][P * kWarp * N];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t stride = int64_t{gridDim.x} * kBlockRows;
  Raw<T, N> weight[P];
  float dw[P][N] = {};
#pragma unroll
  for (int k = 0; k < P; ++k)
    if ((k * kWarp + lane) * N < width) weight[k].load(w + (k * kWarp + lane) * N);
  RowPieces<T, N, P> next;
  const auto fetch = [&](int64_t r) { next.load(dy + r * width, x + r * width, add_dx ? dx + r * width : nullptr, rstd + r, lane, width); };
  int64_t r = int64_t{blockIdx.x} * kBlockRows + warp;
  if (r < rows) fetch(r);
  for (; r < rows; r += stride) {
    const RowPieces<T, N, P> mine = next;
    if (r + stride < rows) fetch(r + stride);
    const float s = mine.rstd;
    float dot = 0, a[N], b[N], g[N];
#pragma unroll
    for (int k = 0; k < P; ++k) {
      if ((k * kWarp + lane) * N >= width) continue;
      mine.dy[k].floats(a);
      mine.x[k].floats(b);
      weight[k].floats(g);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        dot += a[j] * g[j] * b[j];
        dw[k][j] += a[j] * b[j] * s;
      }
    }
    const float c = warp_sum(dot) / static_cast<float>(width) * s * s;
#pragma unroll
    for (int k = 0; k < P; ++k) {
      const int i = (k * kWarp + lane) * N;
      if (i >= width) continue;
      float old[N] = {};
      mine.dy[k].floats(a);
      mine.x[k].floats(b);
      weight[k].floats(g);
      if (add_dx) mine.old[k].floats(old);
#pragma unroll
      for (int j = 0; j < N; ++j) a[j] = (a[j] * g[j] - b[j] * c) * s + old[j];
      store(dx + r * width + i, a);
    }
  }
#pragma unroll
  for (int k = 0; k < P; ++k)
#pragma unroll
    for (int j = 0; j < N; ++j) sums[warp][(k * kWarp + lane) * N + j] = dw[k][j];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kBlockRows * kWarp) {
    float total = 0;
#pragma unroll
    for (int k = 0; k < kBlockRows; ++k) total += sums[k][i];
    parts[blockIdx.x * int64_t{width} + i] = total;
  }
}

// Calls f(std::integral_constant<int, P>) with the pieces a lane has of such a row; false: the row is too wide for one warp.
template <int N, class F>
bool with_pieces(int64_t width, const F& f) {
  if constexpr (N == 1) {
    return false;
  } else {
    switch (ceil_div(width, kWarp * N)) {
      case 0:
      case 1: f(std::integral_constant<int, 1>{}); return true;
      case 2: f(std::integral_constant<int, 2>{}); return true;
      case 3: f(std::integral_constant<int, 3>{}); return true;
      case 4: f(std::integral_constant<int, 4>{}); return true;
      default: return false;
    }
  }
}

}  // namespace hlat
