// Forward: a block per tile of queries walks the tiles of keys with a running maximum m and sum l (online softmax):
//   m' = max(m, row maximum), l' = l exp(m - m') + sum p, o' = o exp(m - m') + p v, p = exp(score - m'); at the end out = o / l.
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
  const size_t shared = sizeof(float) * (2 * kTile * (kHead + 1) + kTile * (kTile + 1));
  return launch(forward<T, kHead, kTile>, x.batch * x.heads * ((x.seq + kTile - 1) / kTile), shared, stream, x);
}

}  // namespace own

cudaError_t own_attention(cudaStream_t stream, const OwnAttention& x) {
  if (mma_attention_takes(x)) return mma_attention(stream, x, false);
  return own::with_head(x.head_dim, [&]<int kHead>() {
    return x.bf16 ? own::run_forward<__nv_bfloat16, kHead>(stream, x) : own::run_forward<float, kHead>(stream, x);
  });
}

}  // namespace hlat
