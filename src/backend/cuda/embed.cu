// Token embedding. The backward adds rows in order of the token position, without atomics: positions are sorted by table row
// (tiles of kTile keys in shared memory, then each key finds its place by binary search in all other tiles; a key is row and
// position, so no two are equal and any sort gives the same order). The first position of each row then walks its group, a warp per
// 32 vectors of columns, with the sums in f32 registers; a bf16 table is rounded once per call.
#include "backend/cuda/device.cuh"

namespace hlat {

namespace {

constexpr int kTile = 2048;
constexpr uint32_t kNoRow = 0xffffffffu;  // ids of other shards: sorted last, never walked

// W: what is copied at a time; words: of W in a row.
template <class W>
__global__ void embed_kernel(W* y, const int32_t* ids, const W* table, int64_t words, int64_t vocab, int64_t first) {
  const int64_t row = ids[blockIdx.x] - first;
  const bool here = 0 <= row && row < vocab;
  for (int64_t i = threadIdx.x; i < words; i += blockDim.x) y[blockIdx.x * words + i] = here ? table[row * words + i] : W{};
}

// Bitonic sort of one tile; past the end are keys larger than all.
__global__ void sort_tiles_kernel(uint64_t* keys, const int32_t* ids, int64_t n, int64_t vocab, int64_t first) {
  __shared__ uint64_t tile[kTile];
  const int64_t begin = int64_t{blockIdx.x} * kTile;
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kTile / 2) {
    uint64_t key = ~uint64_t{0};
    if (begin + i < n) {
      const int64_t row = ids[begin + i] - first;
      key = uint64_t{0 <= row && row < vocab ? static_cast<uint32_t>(row) : kNoRow} << 32 | static_cast<uint32_t>(begin + i);
    }
    tile[i] = key;
  }
  for (int run = 2; run <= kTile; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2) {
      __syncthreads();
      const int t = static_cast<int>(threadIdx.x), i = t / distance * 2 * distance + t % distance, j = i + distance;
      const uint64_t a = tile[i], b = tile[j];
      if ((a > b) == ((i & run) == 0)) {
        tile[i] = b;
        tile[j] = a;
      }
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kTile / 2) keys[begin + i] = tile[i];
}

__global__ void merge_tiles_kernel(uint64_t* sorted, const uint64_t* keys, int64_t n, int tiles) {
  const int64_t e = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const uint64_t key = keys[e];
  if (key == ~uint64_t{0}) return;
  const int mine = static_cast<int>(e / kTile);
  int64_t rank = e % kTile;
  for (int t = 0; t < tiles; ++t) {
    if (t == mine) continue;
    const uint64_t* other = keys + int64_t{t} * kTile;
    int below = 0;  // keys of the tile that are smaller
    for (int step = kTile / 2; step > 0; step /= 2)
      if (other[below + step - 1] < key) below += step;
    rank += below + (other[below] < key ? 1 : 0);
  }
  sorted[rank] = key;
}

template <class G, class T, int N>
__global__ void embed_bwd_kernel(G* dtable, const T* dy, const uint64_t* sorted, int64_t n, int64_t width) {
  constexpr int kAhead = 8;  // rows in flight
  const int64_t i = int64_t{blockIdx.x} * (kBlock / kWarp) + threadIdx.x / kWarp;
  const int64_t column = (int64_t{blockIdx.y} * kWarp + threadIdx.x % kWarp) * N;
  if (i >= n || column >= width) return;
  const uint64_t row = sorted[i] >> 32;
  if (row == kNoRow || (i > 0 && sorted[i - 1] >> 32 == row)) return;
  G* out = dtable + static_cast<int64_t>(row) * width + column;
  float sum[N];
  load(sum, out);
  for (int64_t j = i; j < n; j += kAhead) {
    Raw<T, N> rows[kAhead];
    int count = 0;
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const uint64_t key = j + k < n ? sorted[j + k] : ~uint64_t{0};
      if (key >> 32 != row) continue;  // then the later ones are not of this row either
      rows[k].load(dy + static_cast<int64_t>(key & 0xffffffffu) * width + column);
      ++count;
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (k < count) {
        float v[N];
        rows[k].floats(v);
#pragma unroll
        for (int e = 0; e < N; ++e) sum[e] += v[e];
      }
    if (count < kAhead) break;
  }
  store(out, sum);
}

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

size_t CudaOps::embed_bwd_scratch(int64_t tokens) const {
  return static_cast<size_t>(ceil_div(tokens, kTile) * kTile + tokens) * sizeof(uint64_t);
}

void CudaOps::do_embed_bwd(Tensor dtable, Tensor ids, Tensor dy, int64_t first, Tensor scratch) {
  const int64_t n = dy.dim(0), width = dy.dim(1), vocab = dtable.dim(0), tiles = ceil_div(n, kTile);
  if (dy.numel() == 0 || vocab == 0) return;
  auto* keys = scratch.as<uint64_t>();
  uint64_t* sorted = keys + tiles * kTile;
  launch(sort_tiles_kernel, grid_of(tiles, 1), kTile / 2, stream(), keys, ids.as<int32_t>(), n, vocab, first);
  launch(merge_tiles_kernel, grid_of(tiles * kTile, kBlock), kBlock, stream(), sorted, keys, n, static_cast<int>(tiles));
  with_type(dtable.dtype, [&](auto g) {
    with_type(dy.dtype, [&](auto t) {
      using G = decltype(g);
      using T = decltype(t);
      if constexpr (sizeof(G) >= sizeof(T)) {  // the front lets no sum be narrower than its terms
        with_width<kVector<T>>(width % kVector<T> == 0 && aligned({dtable.data, dy.data}), [&](auto w) {
          const dim3 grid(static_cast<unsigned>(ceil_div(n, kBlock / kWarp)), static_cast<unsigned>(ceil_div(width, kWarp * w())));
          launch(embed_bwd_kernel<G, T, w()>, grid, kBlock, stream(), dtable.as<G>(), dy.as<T>(), sorted, n, width);
        });
      }
    });
  });
}

}  // namespace hlat
