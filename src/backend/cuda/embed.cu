// Token embedding. The backward adds rows without atomics: positions are sorted by table row (embed_sort.cu), and the sorted list is
// cut into segments of kSegment. A warp adds up its segment's rows in f32; of a row that lies in several segments the sums of the
// segments are then added in order. A frequent token is thus not one long walk; a bf16 table is rounded once per call.
#include "backend/cuda/device.cuh"
#include "backend/cuda/embed_sort.h"
#include "ops/gpu_scratch.h"

namespace hlat {

namespace {

constexpr int64_t kSegment = kGpuEmbedSegment;

// W: what is copied at a time; words: of W in a row.
template <class W>
__global__ void embed_kernel(W* y, const int32_t* ids, const W* table, int64_t words, int64_t vocab, int64_t first) {
  const int64_t row = ids[blockIdx.x] - first;
  const bool here = 0 <= row && row < vocab;
  for (int64_t i = threadIdx.x; i < words; i += blockDim.x) y[blockIdx.x * words + i] = here ? table[row * words + i] : W{};
}

__global__ void key_kernel(uint32_t* rows, uint32_t* places, const int32_t* ids, int64_t n, int64_t vocab, int64_t first) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= n) return;
  const int64_t row = ids[i] - first;
  rows[i] = static_cast<uint32_t>(0 <= row && row < vocab ? row : vocab);
  places[i] = static_cast<uint32_t>(i);
}

// Positions in order of their table row, and what is left of rows that go on beyond a segment.
struct Sorted {
  const uint32_t* rows;    // (n) ascending; vocab: not in this shard
  const uint32_t* places;  // (n) positions, ascending within a row
  float* heads;            // (segments, width) of a row that began in an earlier segment
  float* tails;            // (segments, width) of a row that goes on in the next one
  int64_t n, width;
  uint32_t vocab;

  __device__ int64_t end(int64_t segment) const { return (segment + 1) * kSegment < n ? (segment + 1) * kSegment : n; }
  __device__ bool began_before(int64_t i) const { return i > 0 && rows[i - 1] == rows[i]; }
};

template <class G, int N>
__device__ inline void add_to(G* out, const float (&sum)[N]) {
  float v[N];
  load(v, out);
#pragma unroll
  for (int e = 0; e < N; ++e) v[e] += sum[e];
  store(out, v);
}

// A warp per segment and 32 vectors of columns. Rows that lie within the segment are complete.
template <class G, class T, int N>
__global__ void embed_bwd_kernel(G* dtable, const T* dy, const Sorted s) {
  constexpr int kAhead = 8;  // rows of dy in flight
  const int64_t segment = int64_t{blockIdx.x} * (kBlock / kWarp) + threadIdx.x / kWarp, begin = segment * kSegment;
  const int64_t column = (int64_t{blockIdx.y} * kWarp + threadIdx.x % kWarp) * N;
  if (begin >= s.n || column >= s.width) return;
  const int64_t end = s.end(segment);
  uint32_t row = s.rows[begin];
  bool began_before = s.began_before(begin);
  float sum[N] = {};
  for (int64_t i = begin; i < end; i += kAhead) {
    Raw<T, N> next[kAhead];
    uint32_t next_row[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      next_row[k] = i + k < end ? s.rows[i + k] : s.vocab;
      if (next_row[k] != s.vocab) next[k].load(dy + int64_t{s.places[i + k]} * s.width + column);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (i + k >= end) break;
      if (next_row[k] != row) {
        if (began_before)
          store(s.heads + segment * s.width + column, sum);
        else
          add_to(dtable + int64_t{row} * s.width + column, sum);
        began_before = false;
        row = next_row[k];
#pragma unroll
        for (int e = 0; e < N; ++e) sum[e] = 0;
      }
      if (row == s.vocab) return;  // so are all that follow
      float v[N];
      next[k].floats(v);
#pragma unroll
      for (int e = 0; e < N; ++e) sum[e] += v[e];
    }
  }
  if (began_before)
    store(s.heads + segment * s.width + column, sum);
  else if (end < s.n && s.rows[end] == row)
    store(s.tails + segment * s.width + column, sum);
  else
    add_to(dtable + int64_t{row} * s.width + column, sum);
}

// The segment in which a row begins that goes on beyond it adds up what the later ones have of it.
template <class G, int N>
__global__ void embed_join_kernel(G* dtable, const Sorted s) {
  const int64_t segment = int64_t{blockIdx.x} * (kBlock / kWarp) + threadIdx.x / kWarp, begin = segment * kSegment;
  const int64_t column = (int64_t{blockIdx.y} * kWarp + threadIdx.x % kWarp) * N;
  if (begin >= s.n || column >= s.width) return;
  const int64_t end = s.end(segment);
  const uint32_t row = s.rows[end - 1];
  if (row == s.vocab || end == s.n || s.rows[end] != row || (s.rows[begin] == row && s.began_before(begin))) return;
  int64_t low = end, high = s.n;  // the row's last position is in [low, high)
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (s.rows[middle] == row ? low : high) = middle;
  }
  float sum[N], v[N];
  load(sum, s.tails + segment * s.width + column);
#pragma unroll 4
  for (int64_t t = segment + 1; t <= low / kSegment; ++t) {
    load(v, s.heads + t * s.width + column);
#pragma unroll
    for (int e = 0; e < N; ++e) sum[e] += v[e];
  }
  add_to(dtable + int64_t{row} * s.width + column, sum);
}

GpuEmbedScratch scratch_parts(int64_t n, int64_t width) { return {n, width, sort_scratch(n)}; }

}  // namespace

void CudaOps::do_embed(Tensor y, Tensor ids, Tensor table, int64_t first) {
  if (y.numel() == 0) return;
  const auto run = [&](auto word) {
    using W = decltype(word);
    const int64_t words = y.dim(1) * static_cast<int64_t>(size_of(y.dtype)) / static_cast<int64_t>(sizeof(W));
    launch(embed_kernel<W>, grid_of(y.dim(0), 1), std::min(kBlock, row_threads(words, 1)), stream(), y.as<W>(), ids.as<int32_t>(),
           table.as<W>(), words, table.dim(0), first);
  };
  if (y.dim(1) * static_cast<int64_t>(size_of(y.dtype)) % 16 == 0 && aligned({y.data, table.data}))
    run(uint4{});
  else if (y.dtype == DType::bf16)
    run(uint16_t{});
  else
    run(uint32_t{});
}

size_t CudaOps::embed_bwd_scratch(int64_t tokens, int64_t width) const { return tokens == 0 ? 0 : scratch_parts(tokens, width).total; }

void CudaOps::do_embed_bwd(Tensor dtable, Tensor ids, Tensor dy, int64_t first, Tensor scratch) {
  const int64_t n = dy.dim(0), width = dy.dim(1), vocab = dtable.dim(0), segments = ceil_div(n, kSegment);
  if (dy.numel() == 0 || vocab == 0) return;
  const GpuEmbedScratch parts = scratch_parts(n, width);
  auto* sort = scratch.as<std::byte>();
  std::byte* keys = sort + parts.sort_bytes;
  const auto key = [&](size_t i) { return reinterpret_cast<uint32_t*>(keys + i * parts.keys); };
  auto* heads = reinterpret_cast<float*>(keys + 4 * parts.keys);
  launch(key_kernel, grid_of(n, kBlock), kBlock, stream(), key(0), key(1), ids.as<int32_t>(), n, vocab, first);
  sort_pairs(sort, parts.sort_bytes, {key(0), key(1)}, {key(2), key(3)}, n, static_cast<uint32_t>(vocab), stream());
  const Sorted sorted{key(2), key(3), heads, heads + segments * width, n, width, static_cast<uint32_t>(vocab)};
  with_type(dtable.dtype, [&](auto g) {
    with_type(dy.dtype, [&](auto t) {
      using G = decltype(g);
      using T = decltype(t);
      if constexpr (sizeof(G) >= sizeof(T)) {  // the front lets no sum be narrower than its terms
        with_width<kVector<T>>(width % kVector<T> == 0 && aligned({dtable.data, dy.data}), [&](auto w) {
          const dim3 grid(static_cast<unsigned>(ceil_div(segments, kBlock / kWarp)), static_cast<unsigned>(ceil_div(width, kWarp * w())));
          launch(embed_bwd_kernel<G, T, w()>, grid, kBlock, stream(), dtable.as<G>(), dy.as<T>(), sorted);
          launch(embed_join_kernel<G, w()>, grid, kBlock, stream(), dtable.as<G>(), sorted);
        });
      }
    });
  });
}

}  // namespace hlat
