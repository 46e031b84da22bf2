// The tile registers of AMX as functions: eight registers of 16 rows of 64 bytes. A register is named by a template argument,
// because the compiler does not allocate them. The statements are volatile and tell of memory, so they keep their order among
// themselves and with ordinary loads and stores.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/kernels/simd.h"

namespace hlat::HLAT_ISA {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Tiles are usable, with any contents, while one of these lives.
class TileScope {
 public:
  TileScope() {
    const TileConfig config;
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  ~TileScope() { asm volatile("tilerelease"); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

template <int T>
inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(T));
}
// `stride` is the number of bytes from row to row.
template <int T>
inline void tile_load(const void* p, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(T) : "memory");
}
template <int T>
inline void tile_store(void* p, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(stride), "i"(T) : "memory");
}
// C (16 x 16 f32) += A (16 x 32 bf16) B, where row p of B holds rows 2p and 2p + 1 of the (32 x 16) factor, interleaved.
template <int C, int A, int B>
inline void tile_multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}

// 32 bf16 values, rounded to nearest even; what f32 holds below 2^-126 becomes zero.
inline __m512i to_bf16(__m512 low, __m512 high) {
  __m512i out;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(out) : "v"(low), "v"(high));
  return out;
}
inline __m256i to_bf16(__m512 v) {
  __m256i out;
  asm("vcvtneps2bf16 %1, %0" : "=v"(out) : "v"(v));
  return out;
}

}  // namespace
}  // namespace hlat::HLAT_ISA
