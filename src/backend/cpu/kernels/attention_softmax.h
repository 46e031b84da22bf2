// What the attention kernels on plain vectors share: rows of a head in f32, and the softmax of a tile of scores against a running maximum.
#pragma once

#include "backend/cpu/kernels/simd.h"
#include "backend/cpu/kernels/table.h"

namespace hlat::HLAT_ISA {
namespace {

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

constexpr float kNoScore = -1e30f;  // of a key that a query does not see, and the maximum of no scores

// rows x head_dim elements to f32 rows of Ep, zero padded and scaled.
template <class T>
void load_rows(float* dst, const T* src, int64_t row, int64_t rows, int64_t head_dim, float scale) {
  const int64_t padded = padded_head(head_dim);
  for (int64_t r = 0; r < rows; ++r) {
    lanes(head_dim, [&](int64_t i, int64_t m) { store_part(dst + r * padded + i, load_part(src + r * row + i, m) * scale, m); });
    for (int64_t i = head_dim; i < padded; ++i) dst[r * padded + i] = 0;
  }
}

// Largest of the first `visible` scores of a row; the rest are put out of reach.
inline float row_peak(float* s, int64_t visible) {
  for (int64_t j = visible; j < kTile; ++j) s[j] = kNoScore;
  vf top = load(s);
  for (int64_t j = kLanes; j < kTile; j += kLanes) top = max(top, load(s + j));
  return max(top);
}

// Softmax of a score tile in place against the running maximum. Row r sees its first visible(r) keys, at least one. peak, total and factor
// have kTile elements; factor[r] is what the sums made before must be multiplied with.
template <class Visible>
inline void softmax_tile(float* s, int64_t rows, const Visible& visible, float* peak, float* total, float* factor) {
  float top[kTile];
  for (int64_t r = 0; r < rows; ++r) top[r] = row_peak(s + r * kTile, visible(r));
  for (int64_t r = rows; r < kTile; ++r) top[r] = 0;
  for (int64_t r = 0; r < kTile; r += kLanes) {
    const vf now = max(load(peak + r), load(top + r));
    store(factor + r, exp_nonpositive(load(peak + r) - now));
    store(peak + r, now);
  }
  for (int64_t r = 0; r < rows; ++r) {
    float* row = s + r * kTile;
    vf acc{};
    for (int64_t j = 0; j < kTile; j += kLanes) {
      const vf p = exp_nonpositive(load(row + j) - peak[r]);
      store(row + j, p);
      acc += p;
    }
    for (int64_t j = visible(r); j < kTile; ++j) row[j] = 0;  // exactly nothing of later tokens
    total[r] = total[r] * factor[r] + sum(acc);
  }
}

// The sums made before, (rows, Ep), follow a new maximum.
inline void rescale_rows(float* sums, const float* factor, int64_t rows, int64_t padded) {
  for (int64_t r = 0; r < rows; ++r) {
    if (factor[r] == 1.0f) continue;
    for (int64_t i = 0; i < padded; i += kLanes) store(sums + r * padded + i, load(sums + r * padded + i) * factor[r]);
  }
}

}  // namespace
}  // namespace hlat::HLAT_ISA
