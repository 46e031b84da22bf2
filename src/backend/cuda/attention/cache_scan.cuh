// How a warp goes over keys and values in a cache: it holds a few of them at a time as they lie in memory, and a running softmax of some
// rows, each a query of a head.
// A key is spread over kLanes lanes, kPieces pieces of N elements on each; a warp holds 32 / kLanes keys side by side, kAhead deep. Groups
// of lanes work for themselves until merge_groups().
#pragma once

#include "backend/cuda/attention/cache_segment.cuh"
#include "backend/cuda/device.cuh"

namespace hlat::scan {

constexpr int kAhead = 4;
constexpr float kNothing = -1e30f;  // below all scores; differences of it are numbers

// How elements of a head lie on the lanes of a warp.
template <class T, int N, int kHead>
struct Spread {
  static constexpr int kTotal = kHead / N;  // pieces
  static constexpr int kLanes = kTotal < kWarp ? kTotal : kWarp, kPieces = kTotal / kLanes, kKeys = kWarp / kLanes;
  static constexpr int kWidth = N, kElements = kPieces * N;
  static constexpr int kBatch = kKeys * kAhead;  // keys of a warp
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int key() { return static_cast<int>(threadIdx.x) % kWarp / kLanes; }
  __device__ static int element(int piece) { return (piece * kLanes + lane()) * N; }

  // This lane's elements of one head, as they lie in memory; zeros past the head.
  struct Held {
    Raw<T, N> piece[kPieces];
    __device__ void load(const T* from, int head_dim) {
#pragma unroll
      for (int p = 0; p < kPieces; ++p) {
        piece[p] = {};
        if (element(p) < head_dim) piece[p].load(from + element(p));
      }
    }
    __device__ void floats(float (&x)[kElements]) const {
#pragma unroll
      for (int p = 0; p < kPieces; ++p) {
        float part[N];
        piece[p].floats(part);
#pragma unroll
        for (int i = 0; i < N; ++i) x[p * N + i] = part[i];
      }
    }
  };
};

// Keys and values that a warp works on next.
template <class S>
struct Batch {
  typename S::Held k[kAhead], v[kAhead];

  // Keys from `key` on, one per group of lanes and step; past the end the last one stands in.
  template <class T>
  __device__ void load(const T* cache, int64_t width, int head_dim, const CacheSegment& segment, int key, int end) {
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const T* at = cache + segment.slot(min(key + u * S::kKeys, end - 1)) * width;
      k[u].load(at, head_dim);
      v[u].load(at + width / 2, head_dim);
    }
  }
};

// The running softmax of kRows rows over the keys of a group of lanes, later of a warp.
template <class S, int kRows>
struct Rows {
  float q[kRows][S::kElements], sum[kRows][S::kElements], m[kRows], l[kRows];
  int seen[kRows];

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      m[r] = kNothing;
      l[r] = 0;
#pragma unroll
      for (int e = 0; e < S::kElements; ++e) sum[r][e] = 0;
    }
  }

  __device__ void take(const Batch<S>& batch, int key, int end) {
    float score[kRows][kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      float x[S::kElements];
      batch.k[u].floats(x);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float dot = 0;
#pragma unroll
        for (int e = 0; e < S::kElements; ++e) dot += q[r][e] * x[e];
#pragma unroll
        for (int d = S::kLanes / 2; d > 0; d /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, d);
        score[r][u] = key + u * S::kKeys < min(seen[r], end) ? dot : -INFINITY;
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float top = m[r];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) top = fmaxf(top, score[r][u]);
      rescale(r, top);
#pragma unroll
      for (int u = 0; u < kAhead; ++u) l[r] += score[r][u] = exp2_fast(score[r][u] - top);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      float x[S::kElements];
      batch.v[u].floats(x);
#pragma unroll
      for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int e = 0; e < S::kElements; ++e) sum[r][e] += score[r][u] * x[e];
    }
  }

  __device__ void rescale(int r, float top) {
    const float old = exp2_fast(m[r] - top);
    m[r] = top;
    l[r] *= old;
#pragma unroll
    for (int e = 0; e < S::kElements; ++e) sum[r][e] *= old;
  }

  // Over the groups of lanes; the first group has the result.
  __device__ void merge_groups() {
#pragma unroll
    for (int d = S::kLanes; d < kWarp; d *= 2)
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        rescale(r, fmaxf(m[r], __shfl_xor_sync(0xffffffffu, m[r], d)));
        l[r] += __shfl_xor_sync(0xffffffffu, l[r], d);
#pragma unroll
        for (int e = 0; e < S::kElements; ++e) sum[r][e] += __shfl_xor_sync(0xffffffffu, sum[r][e], d);
      }
  }
};

}  // namespace hlat::scan
