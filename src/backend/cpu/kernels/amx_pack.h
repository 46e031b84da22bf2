// Operands of tile products in tile order. A panel is 32 rows of A, or 32 columns of B, along k in steps of 32; one step is
// two tiles of 1 KiB, one after the other:
//   A: 16 rows of 32 values of k each;
//   B: 16 rows, row p with the pairs (2p, 2p + 1) of k of 16 columns.
// The one is the other transposed in units of 32 bits. What lies outside the matrix is zero.
#pragma once

#include "backend/cpu/kernels/amx_tiles.h"

namespace hlat::HLAT_ISA {
namespace {

constexpr int64_t kPanel = 32;              // rows or columns of a panel, values of k in a step
constexpr int64_t kStep = kPanel * kPanel;  // elements of one step

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t steps_of(int64_t k) { return (k + kPanel - 1) / kPanel; }

// The first `count` of 32 lanes; count may be any number.
inline __mmask32 first_lanes(int64_t count) { return count >= 32 ? ~__mmask32{0} : count <= 0 ? 0 : (__mmask32{1} << count) - 1; }

inline __m512i load_words(const b16* p, __mmask32 lanes) { return _mm512_maskz_loadu_epi16(lanes, p); }

// (a0 b0 a1 b1 ...): lanes 0 to 15 of both in `low`, 16 to 31 in `high`.
inline void interleave(__m512i a, __m512i b, __m512i& low, __m512i& high) {
  const __m512i even = _mm512_unpacklo_epi16(a, b), odd = _mm512_unpackhi_epi16(a, b);
  low = _mm512_permutex2var_epi64(even, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), odd);
  high = _mm512_permutex2var_epi64(even, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), odd);
}

// 32 lines of the source, `valid` of them there, each with the lanes of a mask.
inline void copy_step(b16* dst, const b16* src, int64_t ld, int64_t valid, __mmask32 lanes) {
  for (int64_t r = 0; r < kPanel; ++r)
    _mm512_store_si512(dst + r * kPanel, r < valid ? load_words(src + r * ld, lanes) : _mm512_setzero_si512());
}

inline void transpose_step(b16* dst, const b16* src, int64_t ld, int64_t valid, __mmask32 lanes) {
  for (int64_t half = 0; half < kPanel; half += 16) {
    vf row[16];
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r)
      row[r] = reinterpret_cast<vf>(half + r < valid ? load_words(src + (half + r) * ld, lanes) : _mm512_setzero_si512());
    transpose(row);
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) store(reinterpret_cast<float*>(dst + (half + r) * kPanel), row[r]);
  }
}

inline void interleave_step(b16* dst, const b16* src, int64_t ld, int64_t valid, __mmask32 lanes) {
  for (int64_t p = 0; p < kPanel / 2; ++p) {
    const b16* line = src + 2 * p * ld;
    const __m512i a = 2 * p < valid ? load_words(line, lanes) : _mm512_setzero_si512();
    const __m512i b = 2 * p + 1 < valid ? load_words(line + ld, lanes) : _mm512_setzero_si512();
    __m512i low, high;
    interleave(a, b, low, high);
    _mm512_store_si512(dst + p * kPanel, low);
    _mm512_store_si512(dst + kStep / 2 + p * kPanel, high);
  }
}

// Lines that a later step reads: the hardware's prefetchers follow neither so many lines at once nor long strides.
inline void prefetch_lines(const b16* src, int64_t ld, int64_t lines) {
  for (int64_t r = 0; r < least(lines, kPanel); ++r) _mm_prefetch(reinterpret_cast<const char*>(src + r * ld), _MM_HINT_T0);
}

// Panels of op(A), `steps` steps each, of which the first `rows` rows and k values along k exist. Stored as (m, k) lines, or as (k, m) when
// transposed.
inline void pack_a(b16* dst, const b16* src, int64_t ld, bool transposed, int64_t rows, int64_t panels, int64_t k, int64_t steps) {
  constexpr int64_t kAhead = 4;
  const int64_t panel = steps * kStep;
  if (!transposed) {
    for (int64_t r = 0; r < panels * kPanel; r += kPanel, src += kPanel * ld)
      for (int64_t s = 0; s < steps; ++s, dst += kStep) {
        const int64_t left = k - s * kPanel;
        if (left > kAhead * kPanel) prefetch_lines(src + (s + kAhead) * kPanel, ld, rows - r);
        copy_step(dst, src + s * kPanel, ld, left > 0 ? rows - r : 0, first_lanes(left));
      }
    return;
  }
  // All panels of a step together: their columns are neighbours in memory.
  for (int64_t s = 0; s < steps; ++s, src += kPanel * ld, dst += kStep)
    for (int64_t r = 0; r < panels * kPanel; r += kPanel) {
      b16* to = dst + r / kPanel * panel;
      const int64_t left = k - s * kPanel;
      prefetch_lines(src + kPanel * ld + r, ld, left - kPanel);
      interleave_step(to, src + r, ld, left, first_lanes(rows - r));
      transpose_step(to, to, kPanel, kPanel, ~__mmask32{0});
    }
}

// Panels of op(B), with `cols` columns. Stored as (k, n) lines, or as (n, k) when transposed.
inline void pack_b(b16* dst, const b16* src, int64_t ld, bool transposed, int64_t cols, int64_t panels, int64_t k, int64_t steps) {
  constexpr int64_t kAhead = 4;
  const int64_t panel = steps * kStep;
  if (transposed) {
    for (int64_t c = 0; c < panels * kPanel; c += kPanel, src += kPanel * ld)
      for (int64_t s = 0; s < steps; ++s, dst += kStep) {
        const int64_t left = k - s * kPanel;
        if (left > kAhead * kPanel) prefetch_lines(src + (s + kAhead) * kPanel, ld, cols - c);
        transpose_step(dst, src + s * kPanel, ld, left > 0 ? cols - c : 0, first_lanes(left));
      }
    return;
  }
  for (int64_t s = 0; s < steps; ++s, src += kPanel * ld, dst += kStep)
    for (int64_t c = 0; c < panels * kPanel; c += kPanel) {
      const int64_t left = k - s * kPanel;
      prefetch_lines(src + kPanel * ld + c, ld, left - kPanel);
      interleave_step(dst + c / kPanel * panel, src + c, ld, left, first_lanes(cols - c));
    }
}

}  // namespace
}  // namespace hlat::HLAT_ISA
