// Few queries, and all shapes that the tensor cores do not take. A block owns a chunk of keys of one kv head and the queries of all heads
// that share it; its warps share the keys, each with a running maximum m, sum l and weighted values of its own, so that keys and values
// stream from memory once and nothing waits in between. The warps' parts are merged in order; where a text has several chunks their parts
// go to scratch and a second kernel merges those, in order. A text of one chunk is done after the first.
//
// A key is spread over kLanes lanes, kPieces pieces of N elements on each; a warp holds 32 / kLanes keys side by side, kAhead deep, and
// loads the next such batch while it works on one. Rows, of a query and a head, are taken kRows at a time.
#include "backend/cuda/attention/cache_attention.h"
#include "backend/cuda/attention/cache_segment.cuh"
#include "backend/cuda/device.cuh"
#include "ops/attention_shared.h"

namespace hlat {

namespace {

constexpr int64_t kFewQueries = 8;  // of a segment: up to here the keys are split
constexpr int64_t kChunk = 256;     // keys; how a text is split follows from its length alone
constexpr int kOthers = 4;          // queries of a block where keys are not split
constexpr int kWarps = 8, kAhead = 4;
constexpr float kNothing = -1e30f;  // below all scores; differences of it are numbers

bool is_few(int64_t tokens, int64_t max_queries) { return tokens <= kFewTokens && max_queries <= kFewQueries; }
int64_t chunks_of(int64_t tokens, int64_t max_queries, int64_t max_keys) {
  return is_few(tokens, max_queries) ? ceil_div(max_keys, kChunk) : 1;
}

struct Plan {
  CacheAttention call;
  int64_t chunks, tiles;  // at most, of keys and of queries
  int chunk, queries;     // keys and queries of a block

  // A part is m, l and the weighted values of one chunk.
  __device__ float* part(int64_t token, int64_t head, int64_t index) const {
    return call.scratch + ((token * call.heads + head) * chunks + index) * (call.head_dim + 2);
  }
};

// How elements of a head lie on the lanes of a warp.
template <class T, int N, int kHead>
struct Spread {
  static constexpr int kTotal = kHead / N;  // pieces
  static constexpr int kLanes = kTotal < kWarp ? kTotal : kWarp, kPieces = kTotal / kLanes, kKeys = kWarp / kLanes;
  static constexpr int kElements = kPieces * N;
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
  float q[kRows][S::kElements], sum[kRows][S::kElements] = {}, m[kRows], l[kRows] = {};
  int seen[kRows];

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

// What the warps found, for the merge.
template <int kRows, int kHead>
struct Found {
  float m[kWarps][kRows], l[kWarps][kRows], sum[kWarps][kRows][kHead];
};

// The rows of a block: row i is query first + i / group of head i % group of those that share the kv head.
struct Block {
  CacheSegment segment;
  int group, first, rows, begin, end, chunk;
  int64_t kv;

  __device__ explicit Block(const Plan& p)
      : segment(p.call.segment, blockIdx.x % static_cast<unsigned>(p.call.segments)),
        group(static_cast<int>(p.call.heads) / static_cast<int>(p.call.kv_heads)),
        kv(blockIdx.y) {
    const int place = static_cast<int>(blockIdx.x / static_cast<unsigned>(p.call.segments)), chunks = static_cast<int>(p.chunks);
    chunk = place % chunks;
    first = place / chunks * p.queries;
    const int last = min(first + p.queries, segment.count);
    rows = (last - first) * group;
    begin = chunk * p.chunk;
    end = min(segment.seen(last - 1), chunks > 1 ? begin + p.chunk : segment.keys);
  }
  __device__ int64_t token(int row) const { return segment.first + first + row / group; }
  __device__ int64_t head(int row) const { return kv * group + row % group; }
};

template <class T, class S, int kRows>
__device__ void load_rows(Rows<S, kRows>& to, const Plan& p, const Block& at, int row) {
  const float scale = kLog2e / sqrtf(static_cast<float>(p.call.head_dim));  // weights are powers of two in here
  const int64_t width = (p.call.heads + 2 * p.call.kv_heads) * p.call.head_dim;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int i = min(row + r, at.rows - 1);
    typename S::Held held;
    held.load(static_cast<const T*>(p.call.qkv) + at.token(i) * width + at.head(i) * p.call.head_dim, static_cast<int>(p.call.head_dim));
    held.floats(to.q[r]);
#pragma unroll
    for (int e = 0; e < S::kElements; ++e) to.q[r][e] *= scale;
    to.m[r] = kNothing;
    to.seen[r] = at.segment.seen(at.first + i / at.group);
  }
}

// Merges the warps' parts and stores the result, or the chunk's part of it.
template <class T, int kRows, int kHead>
__device__ void store_rows(const Found<kRows, kHead>& found, const Plan& p, const Block& at, int row) {
  const int head_dim = static_cast<int>(p.call.head_dim);
  const bool whole = p.chunks == 1 || at.segment.keys <= p.chunk;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * head_dim; i += kWarps * kWarp) {
    const int r = i / head_dim, e = i % head_dim;
    if (row + r >= at.rows) break;
    float m = found.m[0][r], l = 0, sum = 0;
#pragma unroll
    for (int w = 1; w < kWarps; ++w) m = fmaxf(m, found.m[w][r]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float weight = exp2_fast(found.m[w][r] - m);
      l += weight * found.l[w][r];
      sum += weight * found.sum[w][r][e];
    }
    const int64_t token = at.token(row + r), head = at.head(row + r);
    if (whole) {
      static_cast<T*>(p.call.out)[(token * p.call.heads + head) * head_dim + e] = narrow<T>(sum / l);
    } else {
      float* part = p.part(token, head, at.chunk);
      part[2 + e] = sum;
      if (e == 0) part[0] = m, part[1] = l;
    }
  }
}

// Blocks of a multiprocessor that the registers must suffice for: of one row, memory is kept busier by two.
template <class T, int N, int kHead, int kRows>
constexpr int kBlocks = kRows == 1 && N > 1 && kHead * sizeof(T) <= 512 ? 2 : 1;

template <class T, int N, int kHead, int kRows>
__global__ void __launch_bounds__(kWarps* kWarp, kBlocks<T, N, kHead, kRows>) attend(Plan p) {
  using S = Spread<T, N, kHead>;
  __shared__ Found<kRows, kHead> found;
  const Block at(p);
  if (at.rows <= 0 || at.begin >= at.end) return;
  const int head_dim = static_cast<int>(p.call.head_dim), warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t width = 2 * p.call.kv_heads * p.call.head_dim;
  const T* cache = static_cast<const T*>(p.call.cache) + at.kv * head_dim;
  for (int row = 0; row < at.rows; row += kRows) {
    Rows<S, kRows> state;
    load_rows<T>(state, p, at, row);
    Batch<S> now, next;
    int key = at.begin + warp * S::kBatch;  // of the warp: all its lanes turn as often
    if (key < at.end) next.load(cache, width, head_dim, at.segment, key + S::key(), at.end);
    for (; key < at.end; key += kWarps * S::kBatch) {
      now = next;
      if (key + kWarps * S::kBatch < at.end) next.load(cache, width, head_dim, at.segment, key + kWarps * S::kBatch + S::key(), at.end);
      state.take(now, key + S::key(), at.end);
    }
    state.merge_groups();
    if (row > 0) __syncthreads();  // the rows before were read
    if (S::key() == 0) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (S::lane() == 0) found.m[warp][r] = state.m[r], found.l[warp][r] = state.l[r];
#pragma unroll
        for (int e = 0; e < S::kElements; ++e) found.sum[warp][r][S::element(e / N) + e % N] = state.sum[r][e];
      }
    }
    __syncthreads();
    store_rows<T>(found, p, at, row);
  }
}

// One warp per query and head.
template <class T>
__global__ void __launch_bounds__(kWarps* kWarp) merge_chunks(Plan p) {
  const CacheSegment segment(p.call.segment, blockIdx.x / p.call.max_queries);
  const int query = static_cast<int>(blockIdx.x % p.call.max_queries), lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t head = int64_t{blockIdx.y} * kWarps + threadIdx.x / kWarp;
  const int chunks = (segment.keys + p.chunk - 1) / p.chunk;
  if (query >= segment.count || head >= p.call.heads || chunks == 1) return;
  const int64_t token = segment.first + query, step = p.call.head_dim + 2;
  const float* part = p.part(token, head, 0);
  float m = kNothing, l = 0;
  for (int c = lane; c < chunks; c += kWarp) m = fmaxf(m, part[c * step]);
#pragma unroll
  for (int d = kWarp / 2; d > 0; d /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, d));
#pragma unroll 4
  for (int c = 0; c < chunks; ++c) l += exp2_fast(part[c * step] - m) * part[c * step + 1];
  for (int64_t e = lane; e < p.call.head_dim; e += kWarp) {
    float sum = 0;
#pragma unroll 4
    for (int c = 0; c < chunks; ++c) sum += exp2_fast(part[c * step] - m) * part[c * step + 2 + e];
    static_cast<T*>(p.call.out)[(token * p.call.heads + head) * p.call.head_dim + e] = narrow<T>(sum / l);
  }
}

template <class T, int N, int kHead>
void start(cudaStream_t stream, const Plan& p) {
  const dim3 grid(static_cast<unsigned>(p.call.segments * p.chunks * p.tiles), static_cast<unsigned>(p.call.kv_heads));
  const bool single = std::min<int64_t>(p.queries, p.call.max_queries) * p.call.heads / p.call.kv_heads == 1;
  launch(single ? attend<T, N, kHead, 1> : attend<T, N, kHead, 4>, grid, kWarps * kWarp, stream, p);
  if (p.chunks == 1) return;
  const dim3 merge(static_cast<unsigned>(p.call.segments * p.call.max_queries), static_cast<unsigned>(ceil_div(p.call.heads, kWarps)));
  launch(merge_chunks<T>, merge, kWarps * kWarp, stream, p);
}

template <class T>
void start(cudaStream_t stream, const Plan& p) {
  const int64_t head = p.call.head_dim;
  if (head % kVector<T> != 0 || !aligned({p.call.qkv, p.call.cache})) return start<T, 1, 256>(stream, p);
  if (head <= 64) return start<T, kVector<T>, 64>(stream, p);
  if (head <= 128) return start<T, kVector<T>, 128>(stream, p);
  start<T, kVector<T>, 256>(stream, p);
}

}  // namespace

size_t cache_attention_parts(int64_t tokens, int64_t heads, int64_t head_dim, int64_t max_queries, int64_t max_keys) {
  const int64_t chunks = chunks_of(tokens, max_queries, max_keys);
  return chunks <= 1 ? 0 : static_cast<size_t>(tokens * heads * chunks * (head_dim + 2)) * sizeof(float);
}

cudaError_t run_cache_attention(cudaStream_t stream, const CacheAttention& x) {
  if (x.max_queries == 0 || x.max_keys == 0) return cudaSuccess;
  const bool few = is_few(x.tokens, x.max_queries);
  if (!few && mma_cache_attention_takes(x)) return mma_cache_attention(stream, x);
  const Plan plan{.call = x,
                  .chunks = chunks_of(x.tokens, x.max_queries, x.max_keys),
                  .tiles = few ? 1 : ceil_div(x.max_queries, kOthers),
                  .chunk = static_cast<int>(kChunk),
                  .queries = few ? static_cast<int>(kFewQueries) : kOthers};
  if (x.bf16)
    start<bf16>(stream, plan);
  else
    start<float>(stream, plan);
  return cudaSuccess;
}

}  // namespace hlat
