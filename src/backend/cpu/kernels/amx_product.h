// Products of packed panels (amx_pack.h) on tiles: 32 x 32 of C in four tile registers, so that every tile of A and B that is
// loaded is multiplied twice and the multiplier, not the load ports, sets the pace.
#pragma once

#include "backend/cpu/kernels/amx_pack.h"

namespace hlat::HLAT_ISA {
namespace {

// What will be read soon: `lines` cache lines for every step of a product.
struct Ahead {
  const b16* at = nullptr;
  int64_t lines = 0;
};

// C (32 x 32 f32, ldc floats from row to row) = or += A panel x B panel over `steps` steps of k.
inline void tile_block32(float* c, int64_t ldc, const b16* a, const b16* b, int64_t steps, bool accumulate, Ahead ahead = {}) {
  const int64_t stride = ldc * static_cast<int64_t>(sizeof(float));
  float* lower = c + 16 * ldc;
  if (accumulate) {
    tile_load<0>(c, stride);
    tile_load<1>(c + 16, stride);
    tile_load<2>(lower, stride);
    tile_load<3>(lower + 16, stride);
  } else {
    tile_zero<0>();
    tile_zero<1>();
    tile_zero<2>();
    tile_zero<3>();
  }
  for (int64_t s = 0; s < steps; ++s, a += kStep, b += kStep) {
    tile_load<4>(a, 64);
    tile_load<6>(b, 64);
    tile_multiply<0, 4, 6>();
    for (int64_t line = 0; line < ahead.lines; ++line, ahead.at += kPanel)
      _mm_prefetch(reinterpret_cast<const char*>(ahead.at), _MM_HINT_T1);
    tile_load<7>(b + kStep / 2, 64);
    tile_multiply<1, 4, 7>();
    tile_load<5>(a + kStep / 2, 64);
    tile_multiply<2, 5, 6>();
    tile_multiply<3, 5, 7>();
  }
  tile_store<0>(c, stride);
  tile_store<1>(c + 16, stride);
  tile_store<2>(lower, stride);
  tile_store<3>(lower + 16, stride);
}

// The same for several panels, each `steps` long: C is (32 a_panels, 32 b_panels).
inline void tile_product(float* c, int64_t ldc, const b16* a, int64_t a_panels, const b16* b, int64_t b_panels, int64_t steps,
                         bool accumulate) {
  for (int64_t i = 0; i < a_panels; ++i)
    for (int64_t j = 0; j < b_panels; ++j)
      tile_block32(c + i * kPanel * ldc + j * kPanel, ldc, a + i * steps * kStep, b + j * steps * kStep, steps, accumulate);
}

}  // namespace
}  // namespace hlat::HLAT_ISA
