// A block owns 16 rows of b; its warps share the terms: warp w takes the units w, w + 8, ... of 128 terms, and the warps' sums are added in
// order. Products are m16n8k16 on tensor cores, with b as the left operand: 16 rows of b by 8 rows of a.
//
// Operands go from memory to registers as they lie there. The order of terms inside a product is free as long as both sides agree, so
// lane 4 g + t simply loads 16 bytes, the terms 8 t ... 8 t + 7 of 32, of row g, and hands them on in pairs.
#include "backend/cuda/gpu.cuh"
#include "backend/cuda/matmul/matmul_few_rows.h"
#include "backend/cuda/mma.cuh"

namespace hlat {

namespace {

using mma::bf16;
using mma::multiply_add;

constexpr int kWarps = 8, kTile = 16, kColumns = 8;  // rows of b by rows of a
constexpr int kSteps = 4, kUnit = 32 * kSteps;       // terms
constexpr int kPitch = kTile + 4;                    // of parts: the lanes of a warp then write to different banks

// b is read once: it must not drive a, which all warps read, out of the first-level cache.
__device__ inline uint4 load_once(const bf16* p) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(p));
  return x;
}

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(bf16 x) { return __bfloat162float(x); }
template <class T>
__device__ inline T narrow(float x) {
  if constexpr (sizeof(T) == 4)
    return x;
  else
    return __float2bfloat16_rn(x);
}

// Where a lane finds its terms: 16 rows of b, and the rows of a in tiles of 8.
template <int kTiles>
struct Lane {
  const bf16 *low, *high, *a[kTiles];
  bool there[kTiles];  // the row of a is
  int t;

  __device__ Lane(const FewRowsMatmul& x, int64_t first) {
    const int g = mma::lane() / 4;
    t = mma::lane() % 4;
    const auto* b = static_cast<const bf16*>(x.b) + 8 * t;
    low = b + min(first + g, x.n - 1) * x.ldb;
    high = b + min(first + g + 8, x.n - 1) * x.ldb;
#pragma unroll
    for (int c = 0; c < kTiles; ++c) {
      const int64_t row = kColumns * c + g;
      there[c] = row < x.m;
      a[c] = static_cast<const bf16*>(x.a) + 8 * t + (there[c] ? row * x.lda : 0);
    }
  }
};

// sum[c] += 16 rows of b by rows 8 c ... 8 c + 7 of a, over the unit of terms from k on. All loads are under way before the first product.
template <bool kWhole, int kTiles>
__device__ inline void add_unit(float (&sum)[kTiles][4], const Lane<kTiles>& at, int64_t k, int64_t terms) {
  const uint4 zero = make_uint4(0, 0, 0, 0);
  uint4 low[kSteps], high[kSteps], right[kSteps][kTiles];
#pragma unroll
  for (int j = 0; j < kSteps; ++j) {
    const bool in = kWhole || k + 32 * j + 8 * at.t < terms;
    low[j] = in ? load_once(at.low + k + 32 * j) : zero;
    high[j] = in ? load_once(at.high + k + 32 * j) : zero;
  }
#pragma unroll
  for (int j = 0; j < kSteps; ++j)
#pragma unroll
    for (int c = 0; c < kTiles; ++c) {
      const bool in = at.there[c] && (kWhole || k + 32 * j + 8 * at.t < terms);
      right[j][c] = in ? *reinterpret_cast<const uint4*>(at.a[c] + k + 32 * j) : zero;
    }
#pragma unroll
  for (int j = 0; j < kSteps; ++j)
#pragma unroll
    for (int c = 0; c < kTiles; ++c) {
      multiply_add(sum[c], {low[j].x, high[j].x, low[j].y, high[j].y}, right[j][c].x, right[j][c].y);
      multiply_add(sum[c], {low[j].z, high[j].z, low[j].w, high[j].w}, right[j][c].z, right[j][c].w);
    }
}

template <class Out, int kTiles>
__global__ void __launch_bounds__(kWarps * 32, kTiles == 1 ? 3 : 2) few_rows(FewRowsMatmul x) {
  __shared__ float part[kWarps][kTiles * kColumns][kPitch];
  const int64_t first = int64_t{blockIdx.x} * kTile;
  const Lane<kTiles> at(x, first);
  const int warp = mma::warp(), g = mma::lane() / 4, t = mma::lane() % 4;
  float sum[kTiles][4] = {};
  int64_t k = warp * kUnit;
  for (; k + kUnit <= x.k; k += kWarps * kUnit) add_unit<true>(sum, at, k, x.k);
  if (k < x.k) add_unit<false>(sum, at, k, x.k);
#pragma unroll
  for (int c = 0; c < kTiles; ++c)
#pragma unroll
    for (int i = 0; i < 4; ++i) part[warp][kColumns * c + 2 * t + i % 2][g + i / 2 * 8] = sum[c][i];
  __syncthreads();
  const int row = static_cast<int>(threadIdx.x) / kTile, column = static_cast<int>(threadIdx.x) % kTile;  // of c
  if (row >= kTiles * kColumns || row >= x.m || first + column >= x.n) return;
  float total = part[0][row][column];
#pragma unroll
  for (int w = 1; w < kWarps; ++w) total += part[w][row][column];
  const int64_t place = row * x.ldc + first + column;
  Out value = narrow<Out>(total);
  if (x.residual != nullptr) value = narrow<Out>(widen(static_cast<const Out*>(x.residual)[place]) + widen(value));
  static_cast<Out*>(x.c)[place] = value;
}

template <class Out>
void start(cudaStream_t stream, const FewRowsMatmul& x) {
  const auto blocks = static_cast<unsigned>((x.n + kTile - 1) / kTile);
  if (x.m <= kColumns)
    few_rows<Out, 1><<<blocks, kWarps * 32, 0, stream>>>(x);
  else
    few_rows<Out, 2><<<blocks, kWarps * 32, 0, stream>>>(x);
}

static_assert(kFewRows == 2 * kColumns && kFewRows * kTile == kWarps * 32);

}  // namespace

bool few_rows_matmul_takes(const FewRowsMatmul& x) {
  const auto aligned = [](const void* p, int64_t ld, int64_t rows) {
    return reinterpret_cast<uintptr_t>(p) % 16 == 0 && (ld % 8 == 0 || rows == 1);
  };
  return x.m <= kFewRows && x.k % 8 == 0 && aligned(x.a, x.lda, x.m) && aligned(x.b, x.ldb, x.n);
}

cudaError_t few_rows_matmul(cudaStream_t stream, const FewRowsMatmul& x) {
  if (x.out_bf16)
    start<bf16>(stream, x);
  else
    start<float>(stream, x);
  return cudaGetLastError();
}

}  // namespace hlat
