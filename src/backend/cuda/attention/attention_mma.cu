// Our attention on tensor cores, for bf16 and head sizes that are multiples of 8 up to 128. The passes are those of attention_kernel.cu:
// online softmax forward; backward by keys, then by queries, without atomics.
// Weights and their gradients are rounded to bf16 before they enter a product; everything else is f32.
#include "backend/cuda/attention/attention_mma.cuh"

namespace hlat {

namespace mma {

template <int kHead>
constexpr int kTile = kRows*(kHead + 8);  // elements of a 64-row tile in shared memory

template <int kHead>
__global__ void __launch_bounds__(kThreads) forward(OwnAttention s) {
  constexpr int kKeys = 8;  // tiles of 8 columns: 64 keys
  extern __shared__ __align__(16) unsigned char shared[];
  bf16 *q = reinterpret_cast<bf16*>(shared), *k = q + kTile<kHead>, *v = k + kTile<kHead>;
  const int64_t tiles = (s.seq + kRows - 1) / kRows, heads = s.batch * s.heads;
  const int64_t first = (tiles - 1 - blockIdx.x / heads) * kRows, h = blockIdx.x % s.heads;  // the longest first
  const Layout at(s, blockIdx.x % heads / s.heads, h, h / (s.heads / s.kv_heads));
  const auto* qkv = static_cast<const bf16*>(s.qkv);
  const float scale = kLog2e / sqrtf(static_cast<float>(s.head_dim));  // weights are powers of two in here
  float sum[kHead / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, total[2] = {};
  load_tile<kHead, kRows>(q, qkv + at.q(), at.row, first, s);
  const int64_t row = first + warp() * 16 + lane() / 4;
  for (int64_t key = 0; key <= first; key += kRows) {
    __syncthreads();
    load_tile<kHead, kRows>(k, qkv + at.k(), at.row, key, s);
    load_tile<kHead, kRows>(v, qkv + at.v(), at.row, key, s);
    __syncthreads();
    float p[kKeys][4];
    dot_rows<kHead, kKeys>(p, q + warp() * 16 * (kHead + 8), k);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float high = top[half];
#pragma unroll
      for (int j = 0; j < kKeys; ++j)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          const int64_t column = key + 8 * j + lane() % 4 * 2 + i % 2;
          p[j][i] = column <= row + 8 * half ? p[j][i] * scale : -INFINITY;
          high = fmaxf(high, p[j][i]);
        }
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2));
      const float old = exp2f(top[half] - high);
      float part = 0;
#pragma unroll
      for (int j = 0; j < kKeys; ++j)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) part += p[j][i] = exp2f(p[j][i] - high);
      total[half] = total[half] * old + part;  // of this lane's columns
      top[half] = high;
#pragma unroll
      for (int n = 0; n < kHead / 8; ++n) sum[n][2 * half] *= old, sum[n][2 * half + 1] *= old;
    }
    add_weighted<kHead, kKeys>(sum, p, v);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] += __shfl_xor_sync(0xffffffffu, total[half], 1);
    total[half] += __shfl_xor_sync(0xffffffffu, total[half], 2);
    if (lane() % 4 == 0 && row + 8 * half < s.seq) s.lse[at.stat() + row + 8 * half] = (top[half] + log2f(total[half])) / kLog2e;
  }
  store_rows<kHead>(static_cast<bf16*>(s.out) + at.out(), at.out_row, first, sum, 1 / total[0], 1 / total[1], s);
}

constexpr int kQueries = 4;  // of the pass by keys: tiles of 8 columns, 32 queries at a time

// Transposed: rows are keys, columns are queries.
template <int kHead>
__global__ void __launch_bounds__(kThreads) keys(OwnAttention s) {
  extern __shared__ __align__(16) unsigned char shared[];
  bf16 *k = reinterpret_cast<bf16*>(shared), *v = k + kTile<kHead>, *q = v + kTile<kHead>, *dout = q + kTile<kHead> / 2;
  auto *lse = reinterpret_cast<float*>(dout + kTile<kHead> / 2), *delta = lse + 8 * kQueries;
  const int64_t heads = s.batch * s.kv_heads, first = blockIdx.x / heads * kRows;
  const int64_t b = blockIdx.x % heads / s.kv_heads, kv = blockIdx.x % s.kv_heads, group = s.heads / s.kv_heads;
  const auto* qkv = static_cast<const bf16*>(s.qkv);
  const float scale = 1 / sqrtf(static_cast<float>(s.head_dim));
  const int64_t row = first + warp() * 16 + lane() / 4;
  float dk[kHead / 8][4] = {}, dv[kHead / 8][4] = {};
  const Layout own(s, b, 0, kv);
  load_tile<kHead, kRows>(k, qkv + own.k(), own.row, first, s);
  load_tile<kHead, kRows>(v, qkv + own.v(), own.row, first, s);
  for (int64_t h = kv * group; h < (kv + 1) * group; ++h) {
    const Layout at(s, b, h, kv);
    for (int64_t query = first; query < s.seq; query += 8 * kQueries) {
      __syncthreads();
      load_tile<kHead, 8 * kQueries>(q, qkv + at.q(), at.row, query, s);
      load_tile<kHead, 8 * kQueries>(dout, static_cast<const bf16*>(s.dout) + at.out(), at.out_row, query, s);
      if (threadIdx.x < 8 * kQueries) {
        const int64_t token = query + threadIdx.x;
        lse[threadIdx.x] = token < s.seq ? s.lse[at.stat() + token] * kLog2e : 0.0f;
        delta[threadIdx.x] = token < s.seq ? s.delta[at.stat() + token] : 0.0f;
      }
      __syncthreads();
      float p[kQueries][4], ds[kQueries][4];
      dot_rows<kHead, kQueries>(p, k + warp() * 16 * (kHead + 8), q);
      dot_rows<kHead, kQueries>(ds, v + warp() * 16 * (kHead + 8), dout);
#pragma unroll
      for (int j = 0; j < kQueries; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = 8 * j + lane() % 4 * 2 + i % 2;
          const bool seen = row + i / 2 * 8 <= query + column && query + column < s.seq;
          p[j][i] = seen ? exp2f(p[j][i] * (scale * kLog2e) - lse[column]) : 0.0f;
          ds[j][i] = p[j][i] * (ds[j][i] - delta[column]);
        }
      add_weighted<kHead, kQueries>(dv, p, dout);
      add_weighted<kHead, kQueries>(dk, ds, q);
    }
  }
  auto* to = static_cast<bf16*>(s.dqkv);
  store_rows<kHead>(to + own.k(), own.row, first, dk, scale, scale, s);
  store_rows<kHead>(to + own.v(), own.row, first, dv, 1, 1, s);
}

template <int kHead>
__global__ void __launch_bounds__(kThreads) queries(OwnAttention s) {
  constexpr int kKeys = 8;
  extern __shared__ __align__(16) unsigned char shared[];
  bf16 *q = reinterpret_cast<bf16*>(shared), *dout = q + kTile<kHead>, *k = dout + kTile<kHead>, *v = k + kTile<kHead>;
  const int64_t tiles = (s.seq + kRows - 1) / kRows, heads = s.batch * s.heads;
  const int64_t first = (tiles - 1 - blockIdx.x / heads) * kRows, h = blockIdx.x % s.heads;
  const Layout at(s, blockIdx.x % heads / s.heads, h, h / (s.heads / s.kv_heads));
  const auto* qkv = static_cast<const bf16*>(s.qkv);
  const float scale = 1 / sqrtf(static_cast<float>(s.head_dim));
  const int64_t row = first + warp() * 16 + lane() / 4;
  float dq[kHead / 8][4] = {}, lse[2], delta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool real = row + 8 * half < s.seq;
    lse[half] = real ? s.lse[at.stat() + row + 8 * half] * kLog2e : 0.0f;
    delta[half] = real ? s.delta[at.stat() + row + 8 * half] : 0.0f;
  }
  load_tile<kHead, kRows>(q, qkv + at.q(), at.row, first, s);
  load_tile<kHead, kRows>(dout, static_cast<const bf16*>(s.dout) + at.out(), at.out_row, first, s);
  for (int64_t key = 0; key <= first; key += kRows) {
    __syncthreads();
    load_tile<kHead, kRows>(k, qkv + at.k(), at.row, key, s);
    load_tile<kHead, kRows>(v, qkv + at.v(), at.row, key, s);
    __syncthreads();
    float p[kKeys][4], ds[kKeys][4];
    dot_rows<kHead, kKeys>(p, q + warp() * 16 * (kHead + 8), k);
    dot_rows<kHead, kKeys>(ds, dout + warp() * 16 * (kHead + 8), v);
#pragma unroll
    for (int j = 0; j < kKeys; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool seen = key + 8 * j + lane() % 4 * 2 + i % 2 <= row + i / 2 * 8;
        const float weight = seen ? exp2f(p[j][i] * (scale * kLog2e) - lse[i / 2]) : 0.0f;
        ds[j][i] = weight * (ds[j][i] - delta[i / 2]);
      }
    add_weighted<kHead, kKeys>(dq, ds, k);
  }
  store_rows<kHead>(static_cast<bf16*>(s.dqkv) + at.q(), at.row, first, dq, scale, scale, s);
}

template <int kHead>
cudaError_t run(cudaStream_t stream, const OwnAttention& x, bool backward) {
  const int64_t tiles = (x.seq + kRows - 1) / kRows;
  constexpr size_t kBytes = kTile<kHead> * sizeof(bf16);
  if (!backward) return launch_shared(forward<kHead>, x.batch * x.heads * tiles, kThreads, 3 * kBytes, stream, x);
  const cudaError_t error =
      launch_shared(keys<kHead>, x.batch * x.kv_heads * tiles, kThreads, 3 * kBytes + 16 * kQueries * sizeof(float), stream, x);
  return error == cudaSuccess ? launch_shared(queries<kHead>, x.batch * x.heads * tiles, kThreads, 4 * kBytes, stream, x) : error;
}

}  // namespace mma

bool mma_attention_takes(const OwnAttention& x) {
  uintptr_t addresses = 0;
  for (const void* p : {x.qkv, static_cast<const void*>(x.out), x.dout, static_cast<const void*>(x.dqkv)})
    addresses |= reinterpret_cast<uintptr_t>(p);
  return x.bf16 && x.head_dim % 8 == 0 && x.head_dim <= 128 && addresses % 16 == 0;
}

cudaError_t mma_attention(cudaStream_t stream, const OwnAttention& x, bool backward) {
  return x.head_dim <= 64 ? mma::run<64>(stream, x, backward) : mma::run<128>(stream, x, backward);
}

}  // namespace hlat
