// Pieces of the attention kernels. A block of 256 threads, seen as 16 x 16, works on tiles of kTile tokens. Tiles of q, k, v and dout
// lie in shared memory as f32, padded with zeros to kHead columns; a row is kHead + 1 floats long, so that the 16 threads
// of a row of the block, which read 16 rows of a tile at one column, meet 16 banks.
// Thread (y, x) owns rows y, y + 16, ... and columns x, x + 16, ... of every product.
#pragma once

#include <cuda_bf16.h>

#include "backend/cuda/attention/attention_kernel.h"
#include "backend/cuda/gpu.cuh"

namespace hlat::own {

constexpr int kThreads = 256;
constexpr int kSide = 16;

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline void narrow(float& y, float x) { y = x; }
__device__ inline void narrow(__nv_bfloat16& y, float x) { y = __float2bfloat16_rn(x); }

__device__ inline int thread_x() { return static_cast<int>(threadIdx.x) % kSide; }
__device__ inline int thread_y() { return static_cast<int>(threadIdx.x) / kSide; }

// One head of one sequence inside packed rows.
template <class T>
struct Rows {
  T* data;
  int64_t row;  // elements from token to token
  __device__ T* at(int64_t token) const { return data + token * row; }
};

template <class T>
struct Heads {
  Rows<T> q, k, v;
  __device__ Heads(T* qkv, const OwnAttention& s, int64_t b, int64_t h, int64_t kv) {
    const int64_t row = (s.heads + 2 * s.kv_heads) * s.head_dim;
    T* base = qkv + b * s.seq * row;
    q = {base + h * s.head_dim, row};
    k = {base + (s.heads + kv) * s.head_dim, row};
    v = {base + (s.heads + s.kv_heads + kv) * s.head_dim, row};
  }
};

template <class T>
__device__ Rows<T> head_of_out(T* out, const OwnAttention& s, int64_t b, int64_t h) {
  return {out + (b * s.seq * s.heads + h) * s.head_dim, s.heads * s.head_dim};
}

template <int kTile, int kHead, class T>
__device__ void load_tile(float* tile, const Rows<const T>& from, int64_t first, const OwnAttention& s) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kHead; i += kThreads) {
    const int r = i / kHead, c = i % kHead;
    tile[r * (kHead + 1) + c] = first + r < s.seq && c < s.head_dim ? widen(from.at(first + r)[c]) : 0.0f;
  }
}

// Result r of a thread: rows of the tile times columns of the tile, or of the head.
template <int kTile>
constexpr int kPer = kTile / kSide;

// p[i][j] = a[row i] . b[row j]
template <int kTile, int kHead>
__device__ void dot_rows(float (&p)[kPer<kTile>][kPer<kTile>], const float* a, const float* b) {
  constexpr int kPitch = kHead + 1;
#pragma unroll
  for (int i = 0; i < kPer<kTile>; ++i)
#pragma unroll
    for (int j = 0; j < kPer<kTile>; ++j) p[i][j] = 0;
#pragma unroll 8
  for (int e = 0; e < kHead; ++e) {
    float x[kPer<kTile>], y[kPer<kTile>];
#pragma unroll
    for (int i = 0; i < kPer<kTile>; ++i) x[i] = a[(thread_y() + kSide * i) * kPitch + e];
#pragma unroll
    for (int j = 0; j < kPer<kTile>; ++j) y[j] = b[(thread_x() + kSide * j) * kPitch + e];
#pragma unroll
    for (int i = 0; i < kPer<kTile>; ++i)
#pragma unroll
      for (int j = 0; j < kPer<kTile>; ++j) p[i][j] += x[i] * y[j];
  }
}

// sum[i][c] += sum over r of w(row i, r) * t[r][column c]; w is a tile of weights, read by row or, transposed, by column.
template <int kTile, int kHead, bool kTransposed>
__device__ void add_weighted(float (&sum)[kPer<kTile>][kHead / kSide], const float* w, const float* t) {
#pragma unroll 4
  for (int r = 0; r < kTile; ++r) {
    float x[kPer<kTile>];
#pragma unroll
    for (int i = 0; i < kPer<kTile>; ++i) {
      const int row = thread_y() + kSide * i;
      x[i] = kTransposed ? w[r * (kTile + 1) + row] : w[row * (kTile + 1) + r];
    }
#pragma unroll
    for (int c = 0; c < kHead / kSide; ++c) {
      const float y = t[r * (kHead + 1) + thread_x() + kSide * c];
#pragma unroll
      for (int i = 0; i < kPer<kTile>; ++i) sum[i][c] += x[i] * y;
    }
  }
}

template <int kTile, int kHead, class T>
__device__ void store_rows(const Rows<T>& to, int64_t first, const float (&sum)[kPer<kTile>][kHead / kSide], const float* factor,
                           const OwnAttention& s) {
#pragma unroll
  for (int i = 0; i < kPer<kTile>; ++i) {
    const int64_t token = first + thread_y() + kSide * i;
    if (token >= s.seq) continue;
#pragma unroll
    for (int c = 0; c < kHead / kSide; ++c) {
      const int column = thread_x() + kSide * c;
      if (column < s.head_dim) narrow(to.at(token)[column], factor == nullptr ? sum[i][c] : sum[i][c] * factor[i]);
    }
  }
}

// Calls f with the smallest compiled head size that holds head_dim.
template <class F>
cudaError_t with_head(int64_t head_dim, const F& f) {
  if (head_dim <= 64) return f.template operator()<64>();
  if (head_dim <= 128) return f.template operator()<128>();
  if (head_dim <= 256) return f.template operator()<256>();
  return cudaErrorInvalidValue;
}

}  // namespace hlat::own
