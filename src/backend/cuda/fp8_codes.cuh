// Stores in E4M3 with a scale, bit for bit those of base/fp8.h, and what they meet. Counts are whole numbers and the largest value is
// compared by its bits, so atomic operations give the same numbers in any order.
#pragma once

#include <cuda_fp8.h>

#include "backend/cuda/device.cuh"

namespace hlat {

// N codes, four to a word, the first in the low byte.
template <int N>
struct Codes {
  uint32_t word[N / 4];
  __device__ uint8_t operator[](int j) const { return static_cast<uint8_t>(word[j / 4] >> (j % 4 * 8)); }
};

// The conversion saturates, also what the scale makes infinite. What is not finite itself becomes NaN of its sign.
template <int N>
__device__ inline Codes<N> e4m3_codes(const float (&v)[N], float scale) {
  Codes<N> out;
  float zero = 0;  // NaN if one of them is not finite
#pragma unroll
  for (int j = 0; j < N; ++j) zero += v[j] * 0.0f;
#pragma unroll
  for (int k = 0; k < N / 4; ++k) {
    const auto pair = [&](int j) {
      return static_cast<uint32_t>(__nv_cvt_float2_to_fp8x2(make_float2(v[j] * scale, v[j + 1] * scale), __NV_SATFINITE, __NV_E4M3));
    };
    out.word[k] = pair(4 * k) | pair(4 * k + 2) << 16;
    if (zero == 0) continue;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32_t u = __float_as_uint(v[4 * k + j]);
      if ((u & 0x7fffffffu) < 0x7f800000u) continue;
      out.word[k] = (out.word[k] & ~(0xffu << (8 * j))) | ((u >> 24 & 0x80u) | 0x7fu) << (8 * j);
    }
  }
  return out;
}

// At an address aligned for all of them.
template <int N>
__device__ inline void store_codes(uint8_t* p, const Codes<N>& c) {
  if constexpr (N == 4)
    *reinterpret_cast<uint32_t*>(p) = c.word[0];
  else
    *reinterpret_cast<uint2*>(p) = make_uint2(c.word[0], c.word[1]);
}

// Of the values that a thread stored.
struct CodesMet {
  uint32_t largest = 0;  // bits of the largest absolute value; those of NaN are above all
  uint32_t saturated = 0, lost = 0;
};

template <int N>
__device__ inline void count_met(CodesMet& met, const float (&v)[N], const Codes<N>& codes, float scale, int count) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (j >= count) continue;
    const uint32_t magnitude = __float_as_uint(v[j]) & 0x7fffffffu;
    met.largest = max(met.largest, magnitude);
    met.saturated += magnitude < 0x7f800000u && __uint_as_float(magnitude) * scale > 448.0f ? 1 : 0;
    met.lost += magnitude != 0 && (codes[j] & 0x7fu) == 0 ? 1 : 0;
  }
}

constexpr int kMetNumbers = 3;

// Adds what all threads of a block have met; `shared` holds kMetNumbers * kWarp words that nobody else uses.
__device__ inline void add_met(Fp8Seen* seen, const CodesMet& mine, uint32_t* shared) {
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const auto fold = [](const CodesMet& m) -> CodesMet {
    return {__reduce_max_sync(0xffffffffu, m.largest), __reduce_add_sync(0xffffffffu, m.saturated), __reduce_add_sync(0xffffffffu, m.lost)};
  };
  const CodesMet of_warp = fold(mine);
  if (lane == 0) shared[warp] = of_warp.largest, shared[kWarp + warp] = of_warp.saturated, shared[2 * kWarp + warp] = of_warp.lost;
  __syncthreads();
  if (warp != 0) return;
  const CodesMet total = fold(lane < warps ? CodesMet{shared[lane], shared[kWarp + lane], shared[2 * kWarp + lane]} : CodesMet{});
  if (lane != 0) return;
  const double largest = static_cast<double>(__uint_as_float(total.largest));
  const auto bits = static_cast<unsigned long long>(total.largest > 0x7f800000u ? 0x7ff8000000000000 : __double_as_longlong(largest));
  auto* most = reinterpret_cast<unsigned long long*>(&seen->largest);
  if (bits > *static_cast<volatile unsigned long long*>(most)) atomicMax(most, bits);
  if (total.saturated > 0) atomicAdd(&seen->saturated, static_cast<double>(total.saturated));
  if (total.lost > 0) atomicAdd(&seen->lost, static_cast<double>(total.lost));
}

}  // namespace hlat
