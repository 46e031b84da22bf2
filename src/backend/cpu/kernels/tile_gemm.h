// Small f32 matrix products on tiles that sit in cache: C (+)= A B with A broadcast element by element and B, C dense
// along n. A has any strides, which serves A and its transpose. n is a multiple of kLanes.
#pragma once

#include "backend/cpu/kernels/simd.h"

namespace hlat::HLAT_ISA {
namespace {

// A block is kRows x V vectors of C in registers. Wide blocks need fewer loads for each product: with 6 x 4 the two load
// ports of an AVX-512 core keep up with its multipliers, with 12 x 2 they do not (175 against 145 GFLOP/s measured).
#if defined(__AVX512F__)
constexpr int kVecBlock = 4, kAccumulators = 24;  // of 32 registers
#else
constexpr int kVecBlock = 2, kAccumulators = 12;  // of 16 registers
#endif

template <int R, int V>
inline void tile_block(float* c, int64_t ldc, const float* a, int64_t rs, int64_t cs, const float* b, int64_t ldb, int64_t depth,
                       bool accumulate) {
  vf acc[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = accumulate ? load(c + r * ldc + v * kLanes) : vf{};
  for (int64_t k = 0; k < depth; ++k) {
    vf bv[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) bv[v] = load(b + k * ldb + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const vf av = set(a[r * rs + k * cs]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] += av * bv[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(c + r * ldc + v * kLanes, acc[r][v]);
}

template <int V>
inline void tile_rows(float* c, int64_t ldc, const float* a, int64_t rs, int64_t cs, const float* b, int64_t ldb, int64_t m, int64_t depth,
                      bool accumulate) {
  constexpr int kRows = V == 1 ? 8 : kAccumulators / V;
  int64_t r = 0;
  for (; r + kRows <= m; r += kRows) tile_block<kRows, V>(c + r * ldc, ldc, a + r * rs, rs, cs, b, ldb, depth, accumulate);
  for (; r + 4 <= m; r += 4) tile_block<4, V>(c + r * ldc, ldc, a + r * rs, rs, cs, b, ldb, depth, accumulate);
  for (; r < m; ++r) tile_block<1, V>(c + r * ldc, ldc, a + r * rs, rs, cs, b, ldb, depth, accumulate);
}

inline void tile_gemm(float* c, int64_t ldc, const float* a, int64_t rs, int64_t cs, const float* b, int64_t ldb, int64_t m, int64_t n,
                      int64_t depth, bool accumulate) {
  int64_t j = 0;
  for (; j + kVecBlock * kLanes <= n; j += kVecBlock * kLanes)
    tile_rows<kVecBlock>(c + j, ldc, a, rs, cs, b + j, ldb, m, depth, accumulate);
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) tile_rows<2>(c + j, ldc, a, rs, cs, b + j, ldb, m, depth, accumulate);
  for (; j < n; j += kLanes) tile_rows<1>(c + j, ldc, a, rs, cs, b + j, ldb, m, depth, accumulate);
}

}  // namespace
}  // namespace hlat::HLAT_ISA
