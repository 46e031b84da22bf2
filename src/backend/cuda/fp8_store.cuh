// Values that a kernel makes, stored in FP8 as rows and as columns in one pass. A source says how values are made, and where from:
//   kPlanes          results side by side, each `width` wide
//   kAhead           rows that a thread reads ahead
//   Row, Column      what is read per row and piece of N columns, what once per piece
//   read(row, r, c), column(c), make(v, row, column, r, c)   v: rounded to bf16
// A thread has 16 rows of 8 columns, reads 16 bytes of a row and writes 16 of a column; the lanes of a warp are 64 rows by 64 columns, so
// that reads are 128 bytes long and writes 64. Turned codes wait in shared memory, each thread's its own: registers would have to be named
// by unrolled loops, and instructions would no longer fit their cache. What does not fit, by size or alignment, goes element by element.
#pragma once

#include "backend/cuda/fp8.cuh"

namespace hlat {

struct Fp8Target {
  uint8_t *rows, *columns;  // either may be null
  const float* scale;
  double* seen;
  int64_t height;  // of the matrix: the length of a column
};

constexpr int kStoreRun = 16, kStorePiece = 8;  // rows and columns of a thread
constexpr int kStoreAcross = 8;                 // lanes side by side
constexpr int kStoreTile = 128;                 // rows and columns of a block: two by two warps
constexpr unsigned kStoreThreads = 4 * kWarp;
static_assert(kStoreAcross * kStorePiece * 2 == kStoreTile && kWarp / kStoreAcross * kStoreRun * 2 == kStoreTile);

// v rounded to bf16.
template <int N>
__device__ inline void round_bf16(float (&v)[N]) {
  if constexpr (N == 1) {
    v[0] = widen(narrow<bf16>(v[0]));
  } else {
#pragma unroll
    for (int j = 0; j < N; j += 2) {
      const uint32_t word = pack_bf16(v[j], v[j + 1]);
      v[j] = __uint_as_float(word << 16);
      v[j + 1] = __uint_as_float(word & 0xffff0000u);
    }
  }
}

// Codes of 4 rows of one column per word, each thread's apart by a word.
template <int kPlanes>
using TurnedCodes = uint32_t[kPlanes][kStorePiece][kStoreRun / 4][kStoreThreads];

// The 16 rows of a thread from (row, c) on: codes to rows, and to `turned`.
template <class Source, class F8, bool Count>
__device__ inline void store_rows(Fp8Encoder<F8, Count>& encoder, TurnedCodes<Source::kPlanes>& turned, const Source& source,
                                  const Fp8Target& out, int64_t row, int64_t c, int64_t width) {
  constexpr int kPlanes = Source::kPlanes, kAhead = Source::kAhead;
  const typename Source::Column column = source.column(c);
  typename Source::Row ahead[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) source.read(ahead[i], row + i, c);
#pragma unroll 1
  for (int first = 0; first < kStoreRun; first += kAhead) {
    uint32_t code[kPlanes][kStorePiece];  // of four rows: first by row, then by column
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int64_t r = row + first + i;
      const typename Source::Row now = ahead[i];
      if (first + kAhead < kStoreRun) source.read(ahead[i], r + kAhead, c);
      float v[kPlanes][kStorePiece];
      source.make(v, now, column, r, c);
#pragma unroll
      for (int p = 0; p < kPlanes; ++p) {
        uint32_t(&q)[kStorePiece] = code[p];
        uint32_t mine[2];
        encoder.encode(mine, v[p]);
        if (out.rows != nullptr) put_codes(out.rows + (r * kPlanes + p) * width + c, mine);
        q[i % 4] = mine[0];
        q[4 + i % 4] = mine[1];
        if (i % 4 != 3 || out.columns == nullptr) continue;
        transpose_bytes(q[0], q[1], q[2], q[3]);
        transpose_bytes(q[4], q[5], q[6], q[7]);
#pragma unroll
        for (int j = 0; j < kStorePiece; ++j) turned[p][j][(first + i) / 4][threadIdx.x] = q[j];
      }
    }
  }
}

template <int kPlanes>
__device__ inline void store_columns(const TurnedCodes<kPlanes>& turned, const Fp8Target& out, int64_t row, int64_t c, int64_t width) {
#pragma unroll
  for (int p = 0; p < kPlanes; ++p)
#pragma unroll
    for (int j = 0; j < kStorePiece; ++j) {
      const auto word = [&](int q) { return turned[p][j][q][threadIdx.x]; };
      *reinterpret_cast<uint4*>(out.columns + (p * width + c + j) * out.height + row) = make_uint4(word(0), word(1), word(2), word(3));
    }
}

// Blocks walk over tiles of the first `rows` rows from the last to the first: what was written last is still in the second-level cache.
template <class Source, class F8, bool Count>
__global__ void __launch_bounds__(kStoreThreads)
    fp8_store_kernel(Source source, Fp8Target out, int64_t rows, int64_t width, unsigned across) {
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, tile = gridDim.x - 1 - blockIdx.x;
  const int64_t c = int64_t{tile % across} * kStoreTile + (warp % 2 * kStoreAcross + lane % kStoreAcross) * kStorePiece;
  const int64_t row = int64_t{tile / across} * kStoreTile + (warp / 2 * (kWarp / kStoreAcross) + lane / kStoreAcross) * kStoreRun;
  __shared__ TurnedCodes<Source::kPlanes> turned;
  Fp8Encoder<F8, Count> encoder(out.scale);
  if (c < width && row < rows) {
    store_rows(encoder, turned, source, out, row, c, width);
    if (out.columns != nullptr) store_columns<Source::kPlanes>(turned, out, row, c, width);
  }
  encoder.publish(out.seen);
}

// Rows from `first` on, an element per thread.
template <class Source, class F8, bool Count>
__global__ void fp8_store_rest_kernel(Source source, Fp8Target out, int64_t first, int64_t width) {
  constexpr int kPlanes = Source::kPlanes;
  static_assert(Source::kAhead % 4 == 0 && kStoreRun % Source::kAhead == 0);
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x, row = first + i / width, c = i % width;
  Fp8Encoder<F8, Count> encoder(out.scale);
  if (row < out.height) {
    typename Source::Row now;
    source.read(now, row, c);
    float v[kPlanes][1];
    source.make(v, now, source.column(c), row, c);
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) {
      const uint8_t code = encoder.encode_one(v[p][0]);
      if (out.rows != nullptr) out.rows[(row * kPlanes + p) * width + c] = code;
      if (out.columns != nullptr) out.columns[(p * width + c) * out.height + row] = code;
    }
  }
  encoder.publish(out.seen);
}

// make(std::integral_constant<int, N>) gives the source for pieces of N columns, N 8 or 1; `vectors`: its arguments are aligned for 8.
template <class Make>
void store_fp8(const Fp8Store& store, int64_t rows, int64_t width, bool vectors, cudaStream_t stream, const Make& make) {
  const auto at = [](const Tensor& t) { return static_cast<uint8_t*>(t.data); };
  const Fp8Target out{at(store.rows), at(store.columns), store.scale.as<const float>(),
                      store.seen.defined() ? store.seen.as<double>() : nullptr, rows};
  const bool fits = vectors && width % kStorePiece == 0 && aligned({out.rows, out.columns});
  int64_t whole = fits ? rows / kStoreRun * kStoreRun : 0;  // rows of the fast path
  if (out.columns != nullptr && whole < rows) whole = 0;    // columns are not aligned
  with_fp8(store.dtype(), [&](auto f) {
    using F8 = decltype(f);
    with_count(store.seen, [&](auto count) {
      if (whole > 0) {
        const auto source = make(std::integral_constant<int, kStorePiece>{});
        const int64_t across = ceil_div(width, int64_t{kStoreTile});
        launch(fp8_store_kernel<std::decay_t<decltype(source)>, F8, count()>, grid_of(across * ceil_div(whole, int64_t{kStoreTile}), 1),
               kStoreThreads, stream, source, out, whole, width, across);
      }
      if (whole < rows) {
        const auto source = make(std::integral_constant<int, 1>{});
        launch(fp8_store_rest_kernel<std::decay_t<decltype(source)>, F8, count()>, grid_of((rows - whole) * width, kBlock), kBlock, stream,
               source, out, whole, width);
      }
    });
  });
}

}  // namespace hlat
