// What forward and backward of the tile attention share. Scores are worked on transposed, keys down and queries across: then
// statistics of a query are lanes of a vector, and the weights leave in the order that tiles want.
#pragma once

#include "backend/cpu/kernels/amx_product.h"
#include "backend/cpu/kernels/table.h"

namespace hlat::HLAT_ISA {
namespace {

constexpr float kLog2E = 1.44269504088896341f, kLn2 = 0.69314718055994531f;
constexpr int64_t kTilePanels = kTile / kPanel;  // panels of a tile, and steps along it
constexpr int64_t kTileElements = kTile * kTile;

// Panels along a head, and the head in whole panels.
inline int64_t head_panels(int64_t head_dim) { return steps_of(head_dim); }

// 2^t to about 2 ulp, for t not far above 0; 0 where it underflows.
inline __m512 exp2_small(__m512 t) {
  const __m512 n = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), r = _mm512_sub_ps(t, n);
  __m512 p = _mm512_set1_ps(1.327647198e-3f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.675541334e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.550713274e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.402211972e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.931469671e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.000000072f));
  return _mm512_scalef_ps(p, n);
}

// Of 32 queries in a diagonal tile, the first of them at `first`, those that see key `key`.
inline __mmask32 visible(int64_t first, int64_t key) { return ~first_lanes(key - first); }

// Where 32 lanes (one row of a panel's step) of row r, column block h go in an A operand of kTile rows.
inline int64_t a_place(int64_t r, int64_t h) { return (r / kPanel * kTilePanels + h) * kStep + r % kPanel * kPanel; }
// Where the rows r, r + 1 go, interleaved, in a B operand of kTile rows: this and kStep / 2 further.
inline int64_t b_place(int64_t r, int64_t h) { return (h * kTilePanels + r / kPanel) * kStep + r % kPanel / 2 * kPanel; }

// (head, kTile) sums, times a factor per column, to rows of bf16.
inline void store_transposed(b16* out, int64_t row, const float* sums, const float* factor, int64_t rows, int64_t head_dim) {
  for (int64_t q = 0; q < rows; q += 16) {
    const vf f = load(factor + q);
    for (int64_t e = 0; e < head_dim; e += 16) {
      vf block[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) block[i] = load(sums + (e + i) * kTile + q) * f;
      transpose(block);
      const auto lanes = static_cast<__mmask16>(first_lanes(head_dim - e));
      for (int64_t i = 0; i < least(16, rows - q); ++i)
        _mm256_mask_storeu_epi16(out + (q + i) * row + e, lanes, to_bf16(reinterpret_cast<__m512>(block[i])));
    }
  }
}

}  // namespace
}  // namespace hlat::HLAT_ISA
