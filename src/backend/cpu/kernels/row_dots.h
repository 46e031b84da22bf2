// Dot products of a few rows with a few others, read where they lie: for products that wait for memory. Each sum runs along its rows in the
// same order whatever stands beside it.
#pragma once

#include "backend/cpu/kernels/simd.h"

namespace hlat::HLAT_ISA {
namespace {

// out[r][n] = x[r] . row[n]: R rows of x, x_row elements apart, and N others, `width` long. Rows of out are out_row apart.
template <int R, int N, class X, class T>
inline void row_dots(float* out, int64_t out_row, const X* x, int64_t x_row, const T* const* row, int64_t width) {
  vf acc[R][N] = {};
  lanes(width, [&](int64_t i, int64_t m) {
    vf v[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) v[n] = load_part(row[n] + i, m);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const vf xv = load_part(x + r * x_row + i, m);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) acc[r][n] += xv * v[n];
    }
  });
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) out[r * out_row + n] = sum(acc[r][n]);
}

}  // namespace
}  // namespace hlat::HLAT_ISA
