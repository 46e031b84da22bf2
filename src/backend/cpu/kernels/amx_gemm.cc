// Matrix product on AMX tiles, single-threaded: one block of C from panels packed before (amx_matmul.cc cuts the work). The
// panels of A stay in the second-level cache while those of B pass by. Every 32 x 32 of C is summed over all of k in registers.
#include "backend/cpu/kernels/amx_product.h"
#include "backend/cpu/kernels/declare.h"

namespace hlat::HLAT_ISA {
namespace {

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
  const int64_t share = (kPanel + a_panels - 1) / a_panels;
  alignas(64) float sums[kStep];
  for (int64_t j = 0; j < b_panels; ++j)
    for (int64_t i = 0; i < a_panels; ++i) {
      const b16* b = g.b + j * panel;
      // The next panel of B is fetched meanwhile, a share in each product.
      const Ahead ahead{b + panel + i * share * g.steps * kPanel, j + 1 < b_panels ? share : 0};
      tile_block32(sums, kPanel, g.a + i * panel, b, g.steps, false, ahead);
      if (g.c_bf16)
        finish<b16>(g, sums, i * kPanel, j * kPanel);
      else
        finish<float>(g, sums, i * kPanel, j * kPanel);
    }
}

void gemm_pack_a(const GemmPackArgs& p) { pack_a(p.dst, p.src, p.ld, p.transposed, p.lines, steps_of(p.lines), p.k, steps_of(p.k)); }
void gemm_pack_b(const GemmPackArgs& p) { pack_b(p.dst, p.src, p.ld, p.transposed, p.lines, steps_of(p.lines), p.k, steps_of(p.k)); }

}  // namespace

void fill_amx_gemm(CpuKernels& k) {
  k.gemm_pack_a = gemm_pack_a;
  k.gemm_pack_b = gemm_pack_b;
  k.gemm_block = gemm_block;
}

}  // namespace hlat::HLAT_ISA
