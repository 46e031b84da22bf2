// Pieces of the attention kernels on tensor cores: bf16 products with f32 sums by mma.sync, 16 x 8 results from 16 terms at a time.
// A block is 4 warps; each warp owns 16 rows of a 64-row tile. Tiles lie in shared memory as bf16, a row kHead + 8 long, so that the
// eight rows an ldmatrix reads lie in different banks. The layout of results is that of mma.cuh.
#pragma once

#include "backend/cuda/attention/attention_kernel.h"
#include "backend/cuda/gpu.cuh"
#include "backend/cuda/mma.cuh"

namespace hlat::mma {

constexpr int kThreads = 128;
constexpr int kRows = 64;  // of the tile a block owns

// x[j] += rows a[16 from a] times rows b[8 j ...] over the head: scores of 16 rows by 8 kTiles rows.
template <int kHead, int kTiles>
__device__ inline void dot_rows(float (&x)[kTiles][4], const bf16* a, const bf16* b) {
  constexpr int kPitch = kHead + 8;
#pragma unroll
  for (int j = 0; j < kTiles; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) x[j][i] = 0;
#pragma unroll
  for (int k = 0; k < kHead; k += 16) {
    uint32_t left[4];
    ldmatrix(left, a + (lane() % 16) * kPitch + k + lane() / 16 * 8);
#pragma unroll
    for (int j = 0; j < kTiles; j += 2) {
      uint32_t right[4];
      ldmatrix(right, b + (8 * j + lane() % 8 + lane() / 16 * 8) * kPitch + k + lane() / 8 % 2 * 8);
      multiply_add(x[j], left, right[0], right[1]);
      multiply_add(x[j + 1], left, right[2], right[3]);
    }
  }
}

// sum += w t: w is 16 x 8 kTiles weights in registers, rounded to bf16; t has 8 kTiles rows.
template <int kHead, int kTiles>
__device__ inline void add_weighted(float (&sum)[kHead / 8][4], const float (&w)[kTiles][4], const bf16* t) {
  constexpr int kPitch = kHead + 8;
#pragma unroll
  for (int j = 0; j < kTiles; j += 2) {
    const uint32_t left[4] = {pack_bf16(w[j][0], w[j][1]), pack_bf16(w[j][2], w[j][3]), pack_bf16(w[j + 1][0], w[j + 1][1]),
                              pack_bf16(w[j + 1][2], w[j + 1][3])};
#pragma unroll
    for (int n = 0; n < kHead; n += 16) {
      uint32_t right[4];
      ldmatrix_transposed(right, t + (8 * j + lane() % 8 + lane() / 8 % 2 * 8) * kPitch + n + lane() / 16 * 8);
      multiply_add(sum[n / 8], left, right[0], right[1]);
      multiply_add(sum[n / 8 + 1], left, right[2], right[3]);
    }
  }
}

// kCount rows from token `first` on; zeros past the sequence and past the head.
template <int kHead, int kCount>
__device__ inline void load_tile(bf16* tile, const bf16* from, int64_t row, int64_t first, const OwnAttention& s) {
  constexpr int kPieces = kHead / 8;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kCount * kPieces; i += kThreads) {
    const int r = i / kPieces, c = i % kPieces * 8;
    uint4 piece = make_uint4(0, 0, 0, 0);
    if (first + r < s.seq && c < s.head_dim) piece = *reinterpret_cast<const uint4*>(from + (first + r) * row + c);
    *reinterpret_cast<uint4*>(tile + r * (kHead + 8) + c) = piece;
  }
}

// The warp's 16 rows, times a factor per row (of g and of g + 8).
template <int kHead>
__device__ inline void store_rows(bf16* to, int64_t row, int64_t first, const float (&sum)[kHead / 8][4], float low, float high,
                                  const OwnAttention& s) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t token = first + warp() * 16 + lane() / 4 + 8 * half;
    const float factor = half == 0 ? low : high;
    if (token >= s.seq) continue;
#pragma unroll
    for (int n = 0; n < kHead / 8; ++n) {
      const int column = 8 * n + lane() % 4 * 2;
      if (column < s.head_dim)
        *reinterpret_cast<uint32_t*>(to + token * row + column) = pack_bf16(sum[n][2 * half] * factor, sum[n][2 * half + 1] * factor);
    }
  }
}

// Where a head lies in packed rows, and in rows of outputs.
struct Layout {
  int64_t row, out_row;
  int64_t b, h, kv;
  const OwnAttention& s;
  __device__ Layout(const OwnAttention& x, int64_t batch, int64_t head, int64_t kv_head)
      : row((x.heads + 2 * x.kv_heads) * x.head_dim), out_row(x.heads * x.head_dim), b(batch), h(head), kv(kv_head), s(x) {}
  __device__ int64_t q() const { return b * s.seq * row + h * s.head_dim; }
  __device__ int64_t k() const { return b * s.seq * row + (s.heads + kv) * s.head_dim; }
  __device__ int64_t v() const { return b * s.seq * row + (s.heads + s.kv_heads + kv) * s.head_dim; }
  __device__ int64_t out() const { return b * s.seq * out_row + h * s.head_dim; }
  __device__ int64_t stat() const { return (b * s.heads + h) * s.seq; }
};

}  // namespace hlat::mma
