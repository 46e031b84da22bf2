// Many queries: a block owns a tile of 16 rows per warp and walks the keys that any of them sees in tiles of 64, with a running maximum and
// sum. Rows are the queries of all heads that share a kv head, so short segments fill a tile sooner and keys are fetched once for all.
// While one tile of keys and values is worked on the next is being copied. Warps without rows only help to copy. Scores and sums are f32,
// weights are rounded to bf16. The bits of a row do not depend on the rows beside it.
#include "backend/cuda/attention/attention_mma.cuh"
#include "backend/cuda/attention/cache_attention.h"
#include "backend/cuda/attention/cache_segment.cuh"

namespace hlat {

namespace mma {

constexpr int kKeys = 64;            // of a tile
constexpr int kColumns = kKeys / 8;  // results of 8 columns

// The rows of a block, from `first` on: row i is query i / group of head i % group of those that share the kv head.
struct CacheRows {
  CacheSegment segment;
  int group, rows, first, kv;
  int64_t heads, head_dim;

  // Blocks in a row work for one head on different segments: what these have in common is then fetched from memory once.
  __device__ CacheRows(const CacheAttention& s, int tile_rows)
      : segment(s.segment, blockIdx.x % static_cast<unsigned>(s.segments)),
        group(static_cast<int>(s.heads) / static_cast<int>(s.kv_heads)),
        heads(s.heads),
        head_dim(s.head_dim) {
    const int tiles = (static_cast<int>(s.max_queries) * group + tile_rows - 1) / tile_rows;
    const int place = static_cast<int>(blockIdx.x / static_cast<unsigned>(s.segments));
    rows = segment.count * group;
    first = (tiles - 1 - place % tiles) * tile_rows;  // the longest first
    kv = place / tiles;
  }
  __device__ int seen(int row) const { return segment.seen(min(row, rows - 1) / group); }
  __device__ int64_t query(int row, int64_t width) const {  // in packed rows of this width
    return (segment.first + row / group) * width + (kv * group + row % group) * head_dim;
  }
};

template <int kHead, int kWarps>
__device__ inline void load_queries(bf16* q, const CacheAttention& s, const CacheRows& at) {
  constexpr int kPieces = kHead / 8;
  const int64_t width = (s.heads + 2 * s.kv_heads) * kHead;
  for (int i = static_cast<int>(threadIdx.x); i < 16 * kWarps * kPieces; i += 32 * kWarps) {
    const int row = at.first + i / kPieces, c = i % kPieces * 8;
    const bool real = row < at.rows;
    copy_piece(q + i / kPieces * (kHead + 8) + c, static_cast<const bf16*>(s.qkv) + (real ? at.query(row, width) + c : 0), real);
  }
}

// Keys [key, key + kKeys) and their values, zeros from `end` on; they lie side by side in the tile.
template <int kHead, int kWarps>
__device__ inline void load_keys(bf16* tile, const CacheAttention& s, const CacheRows& at, int key, int end) {
  constexpr int kPieces = kHead / 8;
  const auto* cache = static_cast<const bf16*>(s.cache) + at.kv * kHead;
  const int64_t width = 2 * s.kv_heads * kHead;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kKeys * kPieces; i += 32 * kWarps) {
    const int r = i / kPieces, c = i % kPieces * 8;
    const bool real = key + r < end;
    const bf16* from = cache + (real ? at.segment.slot(key + r) * width : 0) + c;
    bf16* to = tile + r * (kHead + 8) + c;
    copy_piece(to, from, real);
    copy_piece(to + kKeys * (kHead + 8), from + width / 2, real);
  }
}

// A warp's running softmax: of rows g and g + 8 of its 16.
template <int kHead>
struct Running {
  float sum[kHead / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, total[2] = {};

  // Scores become weights; `scale` makes them exponents of 2. Columns from seen[half] on are hidden where `hides`.
  __device__ void weigh(float (&p)[kColumns][4], float scale, int key, const int (&seen)[2], bool hides) {
    if (hides) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (key + 8 * j + lane() % 4 * 2 + i % 2 >= seen[i / 2]) p[j][i] = -INFINITY;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float high = top[half];
#pragma unroll
      for (int j = 0; j < kColumns; ++j) high = fmaxf(high, fmaxf(p[j][2 * half], p[j][2 * half + 1]));
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 1));
      high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, 2));
      const float old = exp2_fast((top[half] - high) * scale), shift = high * scale;
      float part = 0;
#pragma unroll
      for (int j = 0; j < kColumns; ++j)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) part += p[j][i] = exp2_fast(p[j][i] * scale - shift);
      total[half] = total[half] * old + part;  // of this lane's columns
      top[half] = high;
#pragma unroll
      for (int n = 0; n < kHead / 8; ++n) sum[n][2 * half] *= old, sum[n][2 * half + 1] *= old;
    }
  }

  __device__ void store(bf16* out, const CacheRows& at, int row) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float all = total[half] + __shfl_xor_sync(0xffffffffu, total[half], 1);
      all += __shfl_xor_sync(0xffffffffu, all, 2);
      if (row + 8 * half >= at.rows) continue;
      const float factor = 1 / all;
      bf16* to = out + at.query(row + 8 * half, at.heads * kHead) + lane() % 4 * 2;
#pragma unroll
      for (int n = 0; n < kHead / 8; ++n)
        *reinterpret_cast<uint32_t*>(to + 8 * n) = pack_bf16(sum[n][2 * half] * factor, sum[n][2 * half + 1] * factor);
    }
  }
};

template <int kHead, int kWarps>
__global__ void __launch_bounds__(32 * kWarps, 2) cache_forward(CacheAttention s) {
  constexpr int kPitch = kHead + 8, kStage = 2 * kKeys * kPitch;
  extern __shared__ __align__(16) unsigned char shared[];
  bf16 *q = reinterpret_cast<bf16*>(shared), *stages = q + 16 * kWarps * kPitch;
  const CacheRows at(s, 16 * kWarps);
  if (at.segment.count <= kFewQueries || at.first >= at.rows) return;
  const int end = at.seen(at.first + 16 * kWarps - 1);  // of the keys that any row sees
  const int mine = at.first + 16 * warp(), row = mine + lane() / 4;
  const int seen[2] = {at.seen(row), at.seen(row + 8)}, least = at.seen(mine), most = mine < at.rows ? at.seen(mine + 15) : 0;
  const float scale = kLog2e / sqrtf(static_cast<float>(kHead));
  Running<kHead> state;
  load_queries<kHead, kWarps>(q, s, at);
  load_keys<kHead, kWarps>(stages, s, at, 0, end);
  copies_commit();
  for (int key = 0, stage = 0; key < end; key += kKeys, stage ^= 1) {
    if (key + kKeys < end) load_keys<kHead, kWarps>(stages + (stage ^ 1) * kStage, s, at, key + kKeys, end);
    copies_commit();
    copies_wait<1>();  // all but the copies just begun
    __syncthreads();
    if (key < most) {
      const bf16* k = stages + stage * kStage;
      float p[kColumns][4];
      dot_rows<kHead, kColumns>(p, q + 16 * warp() * kPitch, k);
      state.weigh(p, scale, key, seen, key + kKeys > least);
      add_weighted<kHead, kColumns>(state.sum, p, k + kKeys * kPitch);
    }
    __syncthreads();
  }
  if (mine < at.rows) state.store(static_cast<bf16*>(s.out), at, row);
}

template <int kHead, int kWarps>
constexpr size_t kCacheShared = (16 * kWarps + 4 * kKeys) * (kHead + 8) * sizeof(bf16);

template <int kHead, int kWarps>
cudaError_t run_cache(cudaStream_t stream, const CacheAttention& x) {
  const int64_t rows = x.max_queries * (x.heads / x.kv_heads), tiles = (rows + 16 * kWarps - 1) / (16 * kWarps);
  return launch_shared(cache_forward<kHead, kWarps>, tiles * x.kv_heads * x.segments, 32 * kWarps, kCacheShared<kHead, kWarps>, stream, x);
}

// Large tiles fetch the keys less often; small ones suit short segments, and GPUs whose blocks have little shared memory.
template <int kHead>
cudaError_t run_cache(cudaStream_t stream, const CacheAttention& x) {
  int device = 0, shared = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  const bool large = x.max_queries * (x.heads / x.kv_heads) > 64 && kCacheShared<kHead, 8> <= static_cast<size_t>(shared);
  return large ? run_cache<kHead, 8>(stream, x) : run_cache<kHead, 4>(stream, x);
}

}  // namespace mma

bool mma_cache_attention_takes(const CacheAttention& x) {
  uintptr_t addresses = 0;
  for (const void* p : {x.qkv, x.cache, static_cast<const void*>(x.out)}) addresses |= reinterpret_cast<uintptr_t>(p);
  return x.bf16 && (x.head_dim == 64 || x.head_dim == 128) && addresses % 16 == 0;
}

cudaError_t mma_cache_attention(cudaStream_t stream, const CacheAttention& x) {
  return x.head_dim == 64 ? mma::run_cache<64>(stream, x) : mma::run_cache<128>(stream, x);
}

}  // namespace hlat
