// f32 matrix product on packed panels. A is packed in panels of kRows lines, B in panels of kCols lines, k by k, so the
// inner kernel reads both as streams. Packing also widens bf16, which costs nothing extra. Edges are packed as zeros.
// Every element of C is summed over k in one fixed order, whatever the number of threads.
#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/simd.h"
#include "backend/cpu/kernels/tile_gemm.h"

namespace hlat::HLAT_ISA {
namespace {

constexpr int kRows = kRowBlock, kCols = kVecBlock * kLanes;

// One stage of the butterfly: blocks of S lanes are exchanged between rows i and i + S.
template <int S>
inline void exchange(vf* row) {
  vi lane;
#pragma GCC unroll 16
  for (int j = 0; j < kLanes; ++j) lane[j] = j;
  const vi low = (lane & S) != 0 ? lane - S + kLanes : lane, high = (lane & S) != 0 ? lane + kLanes : lane + S;
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if (i & S) continue;
    const vf a = row[i], b = row[i + S];
    row[i] = __builtin_shuffle(a, b, low);
    row[i + S] = __builtin_shuffle(a, b, high);
  }
  if constexpr (S > 1) exchange<S / 2>(row);
}

// In place: row i, lane j becomes row j, lane i.
inline void transpose(vf* row) { exchange<kLanes / 2>(row); }

// Lines [0, lines) of one panel of width P, the rest zero; dst is (depth, P).
template <class T, int P>
void pack_panel_transposed(float* dst, const T* src, int64_t row, int64_t lines, int64_t depth) {
  for (int64_t group = 0; group < P; group += kLanes) {
    constexpr int kLast = P % kLanes == 0 ? kLanes : P % kLanes;  // lanes of the last group
    const bool whole = group + kLanes <= P && group + kLanes <= lines;
    const T* from = src + group * row;
    int64_t k = 0;
    for (; whole && k + kLanes <= depth; k += kLanes) {
      vf block[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) block[i] = load(from + i * row + k);
      transpose(block);
#pragma GCC unroll 16
      for (int j = 0; j < kLanes; ++j) store(dst + (k + j) * P + group, block[j]);
    }
    if (P % kLanes != 0 && !whole && lines - group >= kLast) {  // a panel narrower than a vector: rows past it are not read
      for (; k + kLanes <= depth; k += kLanes) {
        vf block[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) block[i] = i < kLast ? load(from + i * row + k) : vf{};
        transpose(block);
#pragma GCC unroll 16
        for (int j = 0; j < kLanes; ++j) std::memcpy(dst + (k + j) * P + group, &block[j], kLast * sizeof(float));
      }
    }
    for (; k < depth; ++k)
      for (int64_t i = group; i < P && i < group + kLanes; ++i) dst[k * P + i] = i < lines ? value(src[i * row + k]) : 0.0f;
  }
}

template <class T, int P>
void pack_panel_copy(float* dst, const T* src, int64_t row, int64_t lines, int64_t depth) {
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t group = 0; group < P; group += kLanes) {
      const int64_t width = P - group < kLanes ? P - group : kLanes, have = lines - group < width ? lines - group : width;
      store_part(dst + k * P + group, have <= 0 ? vf{} : load_part(src + k * row + group, have), width);
    }
}

template <class T, int P>
void pack(const GemmPackArgs& a) {
  const T* src = static_cast<const T*>(a.src);
  for (int64_t line = 0; line < a.lines; line += P) {
    float* dst = a.dst + line * a.depth;
    const int64_t have = a.lines - line < P ? a.lines - line : P;
    if (a.k_contiguous) pack_panel_transposed<T, P>(dst, src + line * a.row, a.row, have, a.depth);
    else pack_panel_copy<T, P>(dst, src + line, a.row, have, a.depth);
  }
}

void edge_block(float* c, int64_t ldc, const float* a, const float* b, int64_t depth, int64_t rows, int64_t cols, bool accumulate) {
  float local[kRows * kCols];
  tile_block<kRows, kVecBlock>(local, kCols, a, 1, kRows, b, kCols, depth, false);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < cols; ++j) c[r * ldc + j] = accumulate ? c[r * ldc + j] + local[r * kCols + j] : local[r * kCols + j];
}

void gemm(const GemmArgs& g) {
  for (int64_t j = 0; j < g.n; j += kCols) {
    const float* b = g.b + j * g.depth;
    const int64_t cols = g.n - j < kCols ? g.n - j : kCols;
    for (int64_t i = 0; i < g.m; i += kRows) {
      const float* a = g.a + i * g.depth;
      float* c = g.c + i * g.ldc + j;
      const int64_t rows = g.m - i < kRows ? g.m - i : kRows;
      if (rows == kRows && cols == kCols) tile_block<kRows, kVecBlock>(c, g.ldc, a, 1, kRows, b, kCols, g.depth, g.accumulate);
      else edge_block(c, g.ldc, a, b, g.depth, rows, cols, g.accumulate);
    }
  }
}

}  // namespace

void fill_gemm(CpuKernels& k) {
  k.gemm_rows = kRows;
  k.gemm_cols = kCols;
  k.gemm_pack_a[0] = pack<float, kRows>;
  k.gemm_pack_a[1] = pack<b16, kRows>;
  k.gemm_pack_b[0] = pack<float, kCols>;
  k.gemm_pack_b[1] = pack<b16, kCols>;
  k.gemm = gemm;
}

}  // namespace hlat::HLAT_ISA
