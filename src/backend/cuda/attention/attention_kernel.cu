// Forward: a block per tile of queries walks the tiles of keys with a running maximum m and sum l (online softmax):
//   m' = max(m, row maximum), l' = l exp(m - m') + sum p, o' = o exp(m - m') + p v, p = exp(score - m'); at the end out = o / l.
// Backward, from p = exp(score - lse) recomputed tile by tile:
//   dv = p^T do, ds = p (do v^T - delta) / sqrt(E), dq = ds k, dk = ds^T q, delta = do . out
// Three passes: delta; dk and dv, a block per tile of keys, which walks the query heads of its group in order; dq, a block per tile of
// queries. Scores are computed twice, so that nobody adds to what another block writes.
#include "backend/cuda/attention/attention_tile.cuh"

namespace hlat {

namespace own {

template <class T, int kHead, int kTile>
__global__ void __launch_bounds__(kThreads) forward(OwnAttention s) {
  constexpr int kN = kPer<kTile>;
  extern __shared__ float shared[];
  float *q = shared, *kv = q + kTile * (kHead + 1), *p = kv + kTile * (kHead + 1);
  const int64_t tiles = (s.seq + kTile - 1) / kTile, rows = s.batch * s.heads;
  const int64_t tile = tiles - 1 - blockIdx.x / rows, bh = blockIdx.x % rows;  // the longest first
  const int64_t b = bh / s.heads, h = bh % s.heads, first = tile * kTile;
  const Heads<const T> x(static_cast<const T*>(s.qkv), s, b, h, h / (s.heads / s.kv_heads));
  const float scale = 1.0f / sqrtf(static_cast<float>(s.head_dim));
  float sum[kN][kHead / kSide] = {}, m[kN], l[kN] = {};
#pragma unroll
  for (int i = 0; i < kN; ++i) m[i] = -INFINITY;
  load_tile<kTile, kHead>(q, x.q, first, s);
  for (int64_t key = 0; key <= first; key += kTile) {
    __syncthreads();
    load_tile<kTile, kHead>(kv, x.k, key, s);
    __syncthreads();
    float score[kN][kN];
    dot_rows<kTile, kHead>(score, q, kv);
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const int64_t row = first + thread_y() + kSide * i;
      float top = m[i];
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        score[i][j] = key + thread_x() + kSide * j <= row ? score[i][j] * scale : -INFINITY;
        top = fmaxf(top, score[i][j]);
      }
#pragma unroll
      for (int d = kSide / 2; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
      float part = 0;
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        const float weight = expf(score[i][j] - top);
        p[(thread_y() + kSide * i) * (kTile + 1) + thread_x() + kSide * j] = weight;
        part += weight;
      }
#pragma unroll
      for (int d = kSide / 2; d > 0; d /= 2) part += __shfl_xor_sync(0xffffffffu, part, d);
      const float old = expf(m[i] - top);
      l[i] = l[i] * old + part;
      m[i] = top;
#pragma unroll
      for (int c = 0; c < kHead / kSide; ++c) sum[i][c] *= old;
    }
    __syncthreads();
    load_tile<kTile, kHead>(kv, x.v, key, s);
    __syncthreads();
    add_weighted<kTile, kHead, false>(sum, p, kv);
  }
  float inverse[kN];
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    inverse[i] = 1.0f / l[i];
    const int64_t row = first + thread_y() + kSide * i;
    if (row < s.seq && thread_x() == 0) s.lse[bh * s.seq + row] = m[i] + logf(l[i]);
  }
  store_rows<kTile, kHead>(head_of_out(static_cast<T*>(s.out), s, b, h), first, sum, inverse, s);
}

template <class T, int kHead>
cudaError_t run_forward(cudaStream_t stream, const OwnAttention& x) {
  constexpr int kTile = kHead > 128 ? 32 : 64;
  constexpr size_t shared = sizeof(float) * (2 * kTile * (kHead + 1) + kTile * (kTile + 1));
  static_assert(shared == own_attention_shared(kHead, false));
  return launch_shared(forward<T, kHead, kTile>, x.batch * x.heads * ((x.seq + kTile - 1) / kTile), kThreads, shared, stream, x);
}

constexpr int kTile = 32;  // of the backward
constexpr int kN = kPer<kTile>;

// One warp per token and head.
template <class T>
__global__ void __launch_bounds__(kThreads) make_delta(OwnAttention s) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / 32;
  if (i >= s.batch * s.seq * s.heads) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t token = i / s.heads, h = i % s.heads;
  const T *dout = static_cast<const T*>(s.dout) + i * s.head_dim, *out = static_cast<const T*>(s.out) + i * s.head_dim;
  float sum = 0;
  for (int64_t e = lane; e < s.head_dim; e += 32) sum += widen(dout[e]) * widen(out[e]);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (lane == 0) s.delta[(token / s.seq * s.heads + h) * s.seq + token % s.seq] = sum;
}

// Shared memory of both passes.
template <int kHead>
struct Shared {
  float *q, *k, *v, *dout, *p, *ds, *lse, *delta;
  static constexpr int kFloats = 4 * kTile * (kHead + 1) + 2 * kTile * (kTile + 1) + 2 * kTile;
  __device__ explicit Shared(float* base) {
    constexpr int kRows = kTile * (kHead + 1), kWeights = kTile * (kTile + 1);
    q = base, k = q + kRows, v = k + kRows, dout = v + kRows, p = dout + kRows, ds = p + kWeights, lse = ds + kWeights, delta = lse + kTile;
  }
};

// The queries [first, first + kTile) of one head.
template <class T, int kHead>
__device__ void load_queries(const Shared<kHead>& at, const Rows<const T>& q, int64_t b, int64_t h, int64_t first, const OwnAttention& s) {
  load_tile<kTile, kHead>(at.q, q, first, s);
  load_tile<kTile, kHead>(at.dout, head_of_out(static_cast<const T*>(s.dout), s, b, h), first, s);
  if (threadIdx.x < kTile) {
    const int64_t token = first + threadIdx.x, i = (b * s.heads + h) * s.seq + token;
    at.lse[threadIdx.x] = token < s.seq ? s.lse[i] : 0.0f;
    at.delta[threadIdx.x] = token < s.seq ? s.delta[i] : 0.0f;
  }
}

// p and ds of a tile of queries by a tile of keys, into shared memory.
template <int kHead>
__device__ void make_weights(const Shared<kHead>& at, int64_t query, int64_t key, float scale, const OwnAttention& s) {
  float score[kN][kN], dp[kN][kN];
  dot_rows<kTile, kHead>(score, at.q, at.k);
  dot_rows<kTile, kHead>(dp, at.dout, at.v);
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    const int r = thread_y() + kSide * i;
#pragma unroll
    for (int j = 0; j < kN; ++j) {
      const int c = thread_x() + kSide * j;
      const bool seen = key + c <= query + r && query + r < s.seq;
      const float p = seen ? expf(score[i][j] * scale - at.lse[r]) : 0.0f;
      at.p[r * (kTile + 1) + c] = p;
      at.ds[r * (kTile + 1) + c] = p * (dp[i][j] - at.delta[r]) * scale;
    }
  }
}

template <class T, int kHead>
__global__ void __launch_bounds__(kThreads) keys(OwnAttention s) {
  extern __shared__ float shared[];
  const Shared<kHead> at(shared);
  const int64_t rows = s.batch * s.kv_heads, first = blockIdx.x / rows * kTile;  // the first tile has the most queries
  const int64_t b = blockIdx.x % rows / s.kv_heads, kv = blockIdx.x % s.kv_heads, group = s.heads / s.kv_heads;
  const float scale = 1.0f / sqrtf(static_cast<float>(s.head_dim));
  const auto* qkv = static_cast<const T*>(s.qkv);
  float dk[kN][kHead / kSide] = {}, dv[kN][kHead / kSide] = {};
  load_tile<kTile, kHead>(at.k, Heads<const T>(qkv, s, b, 0, kv).k, first, s);
  load_tile<kTile, kHead>(at.v, Heads<const T>(qkv, s, b, 0, kv).v, first, s);
  for (int64_t h = kv * group; h < (kv + 1) * group; ++h)
    for (int64_t query = first; query < s.seq; query += kTile) {
      __syncthreads();
      load_queries<T, kHead>(at, Heads<const T>(qkv, s, b, h, kv).q, b, h, query, s);
      __syncthreads();
      make_weights<kHead>(at, query, first, scale, s);
      __syncthreads();
      add_weighted<kTile, kHead, true>(dv, at.p, at.dout);
      add_weighted<kTile, kHead, true>(dk, at.ds, at.q);
    }
  const Heads<T> to(static_cast<T*>(s.dqkv), s, b, 0, kv);
  store_rows<kTile, kHead>(to.k, first, dk, nullptr, s);
  store_rows<kTile, kHead>(to.v, first, dv, nullptr, s);
}

template <class T, int kHead>
__global__ void __launch_bounds__(kThreads) queries(OwnAttention s) {
  extern __shared__ float shared[];
  const Shared<kHead> at(shared);
  const int64_t rows = s.batch * s.heads, tiles = (s.seq + kTile - 1) / kTile, first = (tiles - 1 - blockIdx.x / rows) * kTile;
  const int64_t b = blockIdx.x % rows / s.heads, h = blockIdx.x % s.heads, kv = h / (s.heads / s.kv_heads);
  const float scale = 1.0f / sqrtf(static_cast<float>(s.head_dim));
  const Heads<const T> x(static_cast<const T*>(s.qkv), s, b, h, kv);
  float dq[kN][kHead / kSide] = {};
  load_queries<T, kHead>(at, x.q, b, h, first, s);
  for (int64_t key = 0; key <= first; key += kTile) {
    __syncthreads();
    load_tile<kTile, kHead>(at.k, x.k, key, s);
    load_tile<kTile, kHead>(at.v, x.v, key, s);
    __syncthreads();
    make_weights<kHead>(at, first, key, scale, s);
    __syncthreads();
    add_weighted<kTile, kHead, false>(dq, at.ds, at.k);
  }
  store_rows<kTile, kHead>(Heads<T>(static_cast<T*>(s.dqkv), s, b, h, kv).q, first, dq, nullptr, s);
}

template <class T>
cudaError_t run_delta(cudaStream_t stream, const OwnAttention& x) {
  return launch_shared(make_delta<T>, (x.batch * x.seq * x.heads * 32 + kThreads - 1) / kThreads, kThreads, 0, stream, x);
}

template <class T, int kHead>
cudaError_t run_backward(cudaStream_t stream, const OwnAttention& x) {
  const int64_t tiles = (x.seq + kTile - 1) / kTile;
  constexpr size_t kBytes = Shared<kHead>::kFloats * sizeof(float);
  static_assert(kBytes == own_attention_shared(kHead, true));
  const cudaError_t error = launch_shared(keys<T, kHead>, x.batch * x.kv_heads * tiles, kThreads, kBytes, stream, x);
  return error == cudaSuccess ? launch_shared(queries<T, kHead>, x.batch * x.heads * tiles, kThreads, kBytes, stream, x) : error;
}

}  // namespace own

cudaError_t own_attention(cudaStream_t stream, const OwnAttention& x) {
  if (mma_attention_takes(x)) return mma_attention(stream, x, false);
  return own::with_head(x.head_dim, [&]<int kHead>() {
    return x.bf16 ? own::run_forward<__nv_bfloat16, kHead>(stream, x) : own::run_forward<float, kHead>(stream, x);
  });
}

cudaError_t own_attention_bwd(cudaStream_t stream, const OwnAttention& x) {
  const cudaError_t error = x.bf16 ? own::run_delta<__nv_bfloat16>(stream, x) : own::run_delta<float>(stream, x);
  if (error != cudaSuccess) return error;
  if (mma_attention_takes(x)) return mma_attention(stream, x, true);
  return own::with_head(x.head_dim, [&]<int kHead>() {
    return x.bf16 ? own::run_backward<__nv_bfloat16, kHead>(stream, x) : own::run_backward<float, kHead>(stream, x);
  });
}

}  // namespace hlat
