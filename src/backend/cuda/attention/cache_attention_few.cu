// Segments of few queries, and all that the tensor cores do not take. A block owns the queries of a segment in all heads that share a kv
// head, and some of the keys; its warps share the keys, each with a running maximum m, sum l and weighted values of its own, so that keys
// and values stream from memory once and nothing waits in between. Then the warps' parts are merged in order.
//
// Of few queries the keys are taken in chunks, so that many blocks can share them: where all segments of a call are such, each chunk has
// a block, which leaves its part in scratch, and a second kernel folds the parts in order. Beside segments of many queries one block does
// all chunks, in the same arithmetic.
#include "backend/cuda/attention/cache_attention.h"
#include "backend/cuda/attention/cache_scan.cuh"
#include "ops/attention_shared.h"

namespace hlat {

namespace {

using scan::Batch;
using scan::Rows;
using scan::Spread;

constexpr int kOthers = 4;  // queries of a block, of many
constexpr int kWarps = 8;

struct Plan {
  CacheAttention call;
  bool few;            // segments of few queries are meant, else those of many
  int64_t chunks;      // that have blocks of their own, at most; 1: a block does them all
  int64_t tiles;       // of queries, at most
  int chunk, queries;  // keys of a chunk and queries of a tile

  // A part is m, l and the weighted values of one chunk.
  __device__ float* part(int64_t token, int64_t head, int64_t index) const {
    return call.scratch + ((token * call.heads + head) * chunks + index) * (call.head_dim + 2);
  }
};

// Of one element: the maximum, the sum of weights and the weighted sum over some keys.
struct Total {
  float m, l, sum;
};

// The roundings are spelled out: two kernels fold, and must agree.
__device__ inline Total fold(const Total& a, const Total& b) {
  const float m = fmaxf(a.m, b.m), x = exp2_fast(a.m - m), y = exp2_fast(b.m - m);
  return {m, __fmaf_rn(a.l, x, __fmul_rn(b.l, y)), __fmaf_rn(a.sum, x, __fmul_rn(b.sum, y))};
}

// What the warps found, for the merge.
template <int kRows, int kHead>
struct Found {
  float m[kWarps][kRows], l[kWarps][kRows], sum[kWarps][kRows][kHead];
};

// The rows of a block: row i is query first + i / group of head i % group of those that share the kv head. Its keys are [begin, end).
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
    rows = p.few == (segment.count <= kFewQueries) ? (last - first) * group : 0;
    begin = chunk * p.chunk;
    end = segment.seen(last - 1);
    if (chunks > 1) end = min(end, begin + p.chunk);
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
    to.seen[r] = at.segment.seen(at.first + i / at.group);
  }
}

// The elements of the rows that a thread merges and stores.
template <int kRows, int kHead>
struct Owned {
  static constexpr int kCount = (kRows * kHead + kWarps * kWarp - 1) / (kWarps * kWarp);
  Total total[kCount];
  __device__ static int row(int i) { return (static_cast<int>(threadIdx.x) + i * kWarps * kWarp) / kHead; }
  __device__ static int element(int i) { return (static_cast<int>(threadIdx.x) + i * kWarps * kWarp) % kHead; }

  // The parts of the warps, in order; of the first chunk, or behind those before.
  __device__ void add(const Found<kRows, kHead>& found, bool is_first) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int r = row(i), e = element(i);
      if (r >= kRows) break;
      float m = found.m[0][r], l = 0, sum = 0;
#pragma unroll
      for (int w = 1; w < kWarps; ++w) m = fmaxf(m, found.m[w][r]);
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        const float weight = exp2_fast(found.m[w][r] - m);
        l += weight * found.l[w][r];
        sum += weight * found.sum[w][r][e];
      }
      const Total all{m, l, sum};
      total[i] = is_first ? all : fold(total[i], all);
    }
  }

  // The results, or this chunk's part of them.
  template <class T>
  __device__ void store(const Plan& p, const Block& at, int first_row) const {
    const int64_t head_dim = p.call.head_dim;
    const bool whole = p.chunks == 1 || at.segment.keys <= p.chunk;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int r = row(i), e = element(i);
      if (r >= kRows || first_row + r >= at.rows || e >= head_dim) continue;
      const int64_t token = at.token(first_row + r), head = at.head(first_row + r);
      if (whole) {
        static_cast<T*>(p.call.out)[(token * p.call.heads + head) * head_dim + e] = narrow<T>(total[i].sum / total[i].l);
      } else {
        float* part = p.part(token, head, at.chunk);
        part[2 + e] = total[i].sum;
        if (e == 0) part[0] = total[i].m, part[1] = total[i].l;
      }
    }
  }
};

// Goes over the keys [begin, end) and leaves what each warp found. `row`: the first of the rows.
template <class T, class S, int kRows, int kHead>
__device__ void go_over(Found<kRows, kHead>& found, Rows<S, kRows>& state, const Plan& p, const Block& at, int row, int begin, int end) {
  const int head_dim = static_cast<int>(p.call.head_dim), warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t width = 2 * p.call.kv_heads * p.call.head_dim;
  const T* cache = static_cast<const T*>(p.call.cache) + at.kv * head_dim;
  Batch<S> now, next;
  int key = begin + warp * S::kBatch;  // of the warp: all its lanes turn as often
  if (key < end) next.load(cache, width, head_dim, at.segment, key + S::key(), end);
  if (begin == at.begin) load_rows<T>(state, p, at, row);  // here: these loads and those of the keys do not wait for each other
  state.clear();
  for (; key < end; key += kWarps * S::kBatch) {
    now = next;
    if (key + kWarps * S::kBatch < end) next.load(cache, width, head_dim, at.segment, key + kWarps * S::kBatch + S::key(), end);
    state.take(now, key + S::key(), end);
  }
  state.merge_groups();
  __syncthreads();  // what was found before was read
  if (S::key() == 0) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (S::lane() == 0) found.m[warp][r] = state.m[r], found.l[warp][r] = state.l[r];
#pragma unroll
      for (int p = 0; p < S::kPieces; ++p)
#pragma unroll
        for (int i = 0; i < S::kWidth; ++i) found.sum[warp][r][S::element(p) + i] = state.sum[r][p * S::kWidth + i];
    }
  }
  __syncthreads();
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
  const int step = p.few ? p.chunk : at.end;
  for (int row = 0; row < at.rows; row += kRows) {
    Rows<S, kRows> state;
    Owned<kRows, kHead> owned;
    for (int begin = at.begin; begin < at.end; begin += step) {
      go_over<T>(found, state, p, at, row, begin, min(begin + step, at.end));
      owned.add(found, begin == at.begin);
    }
    owned.template store<T>(p, at, row);
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
  for (int64_t e = lane; e < p.call.head_dim; e += kWarp) {
    Total total{part[0], part[1], part[2 + e]};
#pragma unroll 4
    for (int c = 1; c < chunks; ++c) total = fold(total, {part[c * step], part[c * step + 1], part[c * step + 2 + e]});
    static_cast<T*>(p.call.out)[(token * p.call.heads + head) * p.call.head_dim + e] = narrow<T>(total.sum / total.l);
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

cudaError_t run_cache_attention(cudaStream_t stream, const CacheAttention& x) {
  if (x.max_queries == 0 || x.max_keys == 0) return cudaSuccess;
  const auto run = [&](bool few) {
    const Plan plan{.call = x,
                    .few = few,
                    .chunks = few ? cache_chunks(x.tokens, x.max_queries, x.max_keys) : 1,
                    .tiles = few ? 1 : ceil_div(x.max_queries, kOthers),
                    .chunk = static_cast<int>(kCacheChunk),
                    .queries = few ? static_cast<int>(kFewQueries) : kOthers};
    with_type(x.bf16 ? DType::bf16 : DType::f32, [&](auto t) { start<decltype(t)>(stream, plan); });
  };
  run(true);
  if (x.max_queries <= kFewQueries) return cudaSuccess;
  if (mma_cache_attention_takes(x)) return mma_cache_attention(stream, x);
  run(false);
  return cudaSuccess;
}

}  // namespace hlat
