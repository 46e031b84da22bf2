// Matrix product on AMX tiles, single-threaded: one block of C from panels packed before (amx_matmul.cc cuts the work).
// k is walked in runs whose panel of B stays in the first-level cache while the panels of A pass by from the second level;
// sums of the whole block are kept in f32, 32 x 32 at a time, and leave for C after the last run.
#include "backend/cpu/kernels/amx_product.h"
#include "backend/cpu/kernels/declare.h"

namespace hlat::HLAT_ISA {
namespace {

constexpr int64_t kRun = 16;  // steps: a panel of 32 KiB

inline __m512 load_out(const float* p, __mmask16 m) { return _mm512_maskz_loadu_ps(m, p); }
inline __m512 load_out(const b16* p, __mmask16 m) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, p)), 16));
}
inline void store_out(float* p, __m512 v, __mmask16 m) { _mm512_mask_storeu_ps(p, m, v); }
inline void store_out(b16* p, __m512 v, __mmask16 m) { _mm256_mask_storeu_epi16(p, m, to_bf16(v)); }

// 32 x 32 sums to their place in C, `rows` x `cols` of them.
template <class T>
void finish(const GemmBlockArgs& g, const float* sums, int64_t row, int64_t col) {
  const int64_t rows = least(g.rows - row, kPanel), cols = least(g.cols - col, kPanel);
  for (int64_t r = 0; r < rows; ++r) {
    T* c = static_cast<T*>(g.c) + (row + r) * g.ldc + col;
    for (int64_t j = 0; j < cols; j += 16) {
      const auto m = static_cast<__mmask16>(first_lanes(cols - j));
      __m512 v = _mm512_load_ps(sums + r * kPanel + j);
      if (g.start != nullptr) v = _mm512_add_ps(v, load_out(g.start + (row + r) * g.start_row + col + j, m));
      if (g.accumulate) v = _mm512_add_ps(v, load_out(c + j, m));
      store_out(c + j, v, m);
    }
  }
}

void gemm_block(const GemmBlockArgs& g) {
  const TileScope tiles;
  const int64_t a_panels = steps_of(g.rows), b_panels = steps_of(g.cols), panel = g.steps * kStep;
  const int64_t runs = g.steps > kRun ? (g.steps + kRun - 1) / kRun : 1;
  for (int64_t run = 0; run < runs; ++run) {
    const int64_t begin = g.steps * run / runs, count = g.steps * (run + 1) / runs - begin;
    for (int64_t j = 0; j < b_panels; ++j)
      for (int64_t i = 0; i < a_panels; ++i) {
        float* sums = g.work + (runs == 1 ? 0 : (j * a_panels + i) * kStep);
        tile_block32(sums, kPanel, g.a + i * panel + begin * kStep, g.b + j * panel + begin * kStep, count, run > 0);
        if (run + 1 < runs) continue;
        if (g.c_bf16)
          finish<b16>(g, sums, i * kPanel, j * kPanel);
        else
          finish<float>(g, sums, i * kPanel, j * kPanel);
      }
  }
}

void gemm_pack_a(const GemmPackArgs& p) { pack_a(p.dst, p.src, p.ld, p.transposed, p.lines, p.k, steps_of(p.k)); }
void gemm_pack_b(const GemmPackArgs& p) { pack_b(p.dst, p.src, p.ld, p.transposed, p.lines, p.k, steps_of(p.k)); }

}  // namespace

void fill_amx_gemm(CpuKernels& k) {
  k.gemm_pack_a = gemm_pack_a;
  k.gemm_pack_b = gemm_pack_b;
  k.gemm_block = gemm_block;
}

}  // namespace hlat::HLAT_ISA
