// Philox4x32-10 on the device, bit for bit that of base/rng.h, and stochastic rounding with it: element e of a 16-bit stream is
// half-word e % 8 of block e / 8. A thread works on N = 4 or 8 neighbouring elements; where they are one aligned group of the global
// tensor, one block serves them all, else blocks are made as the elements ask for them.
#pragma once

#include "backend/cuda/device.cuh"
#include "base/rng.h"

namespace hlat {

// A NoiseKey as the kernels take it.
struct DeviceKey {
  uint32_t key0, key1, step, purpose;
};

inline DeviceKey device_key(const NoiseKey& k) {
  const auto words = philox_key(k);
  return {words[0], words[1], k.step, static_cast<uint32_t>(k.purpose)};
}

__device__ inline uint4 philox_block(const DeviceKey& k, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32), c2 = k.step, c3 = k.purpose;
  uint32_t k0 = k.key0, k1 = k.key1;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return make_uint4(c0, c1, c2, c3);
}

__device__ inline uint32_t word_of(const uint4& q, int i) { return i == 0 ? q.x : i == 1 ? q.y : i == 2 ? q.z : q.w; }

// ElementMap::global on the device.
__device__ inline int64_t global_of(const ElementMap& m, int64_t e) {
  const int64_t i = m.offset + e;
  return m.run == 0 || m.run == m.stride ? m.first + i : m.first + i / m.run * m.stride + i % m.run;
}

// Where N neighbouring elements lie: `whole` when they are one aligned group of the global tensor.
struct Group {
  int64_t first;
  bool whole;
};
template <int N>
__device__ inline Group group_at(const ElementMap& m, int64_t e) {
  const int64_t first = global_of(m, e);
  return {first, first % N == 0 && global_of(m, e + N - 1) == first + N - 1};
}

// N numbers of 16 bits (bf16 or noise), two to a word, low half first.
template <int N>
struct Halves {
  uint32_t word[N / 2];
  __device__ bf16 operator[](int j) const { return {static_cast<uint16_t>(word[j / 2] >> (j % 2 * 16))}; }
};

// Rounds to bf16 with 16 random bits: up with the probability of the distance. Infinity and NaN pass.
__device__ inline uint32_t stochastic_bits(float x, uint32_t noise) {
  const uint32_t u = __float_as_uint(x);
  if ((u & 0x7f800000u) == 0x7f800000u) return narrow<bf16>(x).bits;
  return (u + noise) >> 16;
}

// The noise of `count` <= N elements from e on.
template <int N>
__device__ inline Halves<N> noise_of(const DeviceKey& key, const ElementMap& map, int64_t e, const Group& group, int count) {
  if (group.whole) {
    const uint4 q = philox_block(key, static_cast<uint64_t>(group.first) / 8);
    if constexpr (N == 8)
      return {q.x, q.y, q.z, q.w};
    else
      return group.first % 8 == 0 ? Halves<N>{q.x, q.y} : Halves<N>{q.z, q.w};
  }
  uint64_t low = 0, high = 0;
  uint4 words{};
  int64_t have = -1;
#pragma unroll 1
  for (int j = count - 1; j >= 0; --j) {
    const int64_t g = global_of(map, e + j);
    if (g / 8 != have) {
      have = g / 8;
      words = philox_block(key, static_cast<uint64_t>(have));
    }
    const int half = static_cast<int>(g % 8);
    high = high << 16 | low >> 48;
    low = low << 16 | (word_of(words, half / 2) >> (half % 2 * 16) & 0xffffu);
  }
  if constexpr (N == 8)
    return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
  else
    return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32)};
}

// Floats to the bf16 neighbours that the noise chooses.
template <int N>
__device__ inline Halves<N> round_stochastic(const float (&v)[N], const Halves<N>& noise) {
  float zero = 0;  // NaN if one of them is not finite
#pragma unroll
  for (int j = 0; j < N; ++j) zero += v[j] * 0.0f;
  Halves<N> out;
#pragma unroll
  for (int k = 0; k < N / 2; ++k) {
    const uint32_t n = noise.word[k];
    if (zero == 0)
      out.word[k] = __byte_perm(__float_as_uint(v[2 * k]) + (n & 0xffffu), __float_as_uint(v[2 * k + 1]) + (n >> 16), 0x7632);
    else
      out.word[k] = stochastic_bits(v[2 * k], n & 0xffffu) | stochastic_bits(v[2 * k + 1], n >> 16) << 16;
  }
  return out;
}

template <int N>
__device__ inline Halves<N> round_nearest(const float (&v)[N]) {
  Halves<N> out;
#pragma unroll
  for (int k = 0; k < N / 2; ++k) out.word[k] = pack_bf16(v[2 * k], v[2 * k + 1]);
  return out;
}

// At an address aligned for all of them.
template <int N>
__device__ inline void store_halves(bf16* p, const Halves<N>& h) {
  if constexpr (N == 8)
    *reinterpret_cast<uint4*>(p) = make_uint4(h.word[0], h.word[1], h.word[2], h.word[3]);
  else
    *reinterpret_cast<uint2*>(p) = make_uint2(h.word[0], h.word[1]);
}

}  // namespace hlat
