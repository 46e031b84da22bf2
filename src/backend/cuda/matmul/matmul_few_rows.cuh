// Pieces of the kernels for few rows. A warp works on 16 rows of b, the left operand of products, in units of 128 terms, straight from
// memory to registers. The order of terms inside a product is free as long as both sides agree, so lane 4 g + t simply loads 16 bytes, the
// terms 8 t ... 8 t + 7 of 32, of row g, and hands them on in pairs; of a it needs the same terms of row g of a tile of 8.
#pragma once

#include "backend/cuda/matmul/matmul_few_rows.h"
#include "backend/cuda/mma.cuh"

namespace hlat::few_rows {

using mma::bf16;

constexpr int kTile = 16, kColumns = 8;         // rows of b by rows of a
constexpr int kSteps = 4, kUnit = 32 * kSteps;  // terms

// b is read once: it must not drive a, which all warps read, out of the first-level cache.
__device__ inline uint4 load_once(const bf16* p) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(p));
  return x;
}

// Where a lane finds its terms of b: in two of 16 rows. The last row stands in for those past the end.
struct Place {
  const bf16 *low, *high;
  int t;

  __device__ Place(const FewRowsMatmul& x, int64_t first) : t(mma::lane() % 4) {
    const auto* b = static_cast<const bf16*>(x.b) + 8 * t;
    const int64_t row = first + mma::lane() / 4;
    low = b + min(row, x.n - 1) * x.ldb;
    high = b + min(row + 8, x.n - 1) * x.ldb;
  }
};

// A lane's share of 16 rows by 128 terms, from term k on; zeros past the last.
struct Unit {
  uint4 low[kSteps], high[kSteps];

  __device__ void load(const Place& at, int64_t k, int64_t terms) {
    if (k + kUnit <= terms)
      load<true>(at, k, terms);
    else
      load<false>(at, k, terms);
  }
  // c += the rows by 8 rows of a, of which this lane has the terms of a step.
  __device__ void add(float (&c)[4], int step, const uint4& a) const {
    const uint4 &l = low[step], &h = high[step];
    mma::multiply_add(c, {l.x, h.x, l.y, h.y}, a.x, a.y);
    mma::multiply_add(c, {l.z, h.z, l.w, h.w}, a.z, a.w);
  }

 private:
  template <bool kWhole>
  __device__ void load(const Place& at, int64_t k, int64_t terms) {
#pragma unroll
    for (int j = 0; j < kSteps; ++j) {
      const bool in = kWhole || k + 32 * j + 8 * at.t < terms;
      low[j] = in ? load_once(at.low + k + 32 * j) : make_uint4(0, 0, 0, 0);
      high[j] = in ? load_once(at.high + k + 32 * j) : make_uint4(0, 0, 0, 0);
    }
  }
};

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(bf16 x) { return __bfloat162float(x); }
template <class T>
__device__ inline T narrow(float x) {
  if constexpr (sizeof(T) == 4)
    return x;
  else
    return __float2bfloat16_rn(x);
}

template <class Out>
__device__ inline void store(const FewRowsMatmul& x, int64_t row, int64_t column, float sum) {
  const int64_t at = row * x.ldc + column;
  Out value = narrow<Out>(sum);
  if (x.residual != nullptr) value = narrow<Out>(widen(static_cast<const Out*>(x.residual)[at]) + widen(value));
  static_cast<Out*>(x.c)[at] = value;
}

}  // namespace hlat::few_rows
