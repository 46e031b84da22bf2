// Helpers of the kernel files: 16-byte loads and stores that widen to f32, sums over a block in a fixed order, and the choice
// of a kernel by element type and alignment.
// Arithmetic is f32. Aliased arguments are legal in many ops, so nothing here reads through the non-coherent cache.
#pragma once

#include <algorithm>
#include <type_traits>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/gpu.cuh"
#include "base/bf16.h"
#include "base/ceil_div.h"

namespace hlat {

constexpr int kWarp = 32;
constexpr unsigned kBlock = 256;  // threads of the elementwise kernels

// Elements of type T in one 16-byte access.
template <class T>
constexpr int kVector = static_cast<int>(16 / sizeof(T));

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(bf16 x) { return __uint_as_float(static_cast<uint32_t>(x.bits) << 16); }

template <class T>
__device__ inline T narrow(float x) {
  if constexpr (std::is_same_v<T, float>)
    return x;
  else
    return bf16{static_cast<uint16_t>(pack_bf16(x, 0.0f))};
}

// N elements at p, which is aligned to N * sizeof(T) or to 16 bytes, whichever is less.
template <int N>
__device__ inline void load(float (&v)[N], const float* p) {
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const float4 q = *reinterpret_cast<const float4*>(p + i);
      v[i] = q.x, v[i + 1] = q.y, v[i + 2] = q.z, v[i + 3] = q.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = p[i];
  }
}
template <int N>
__device__ inline void load(float (&v)[N], const bf16* p) {
  if constexpr (N % 8 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 8) {
      const uint4 q = *reinterpret_cast<const uint4*>(p + i);
      const uint32_t word[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        v[i + 2 * j] = __uint_as_float(word[j] << 16);
        v[i + 2 * j + 1] = __uint_as_float(word[j] & 0xffff0000u);
      }
    }
  } else if constexpr (N == 4) {
    const uint2 q = *reinterpret_cast<const uint2*>(p);
    v[0] = __uint_as_float(q.x << 16), v[1] = __uint_as_float(q.x & 0xffff0000u);
    v[2] = __uint_as_float(q.y << 16), v[3] = __uint_as_float(q.y & 0xffff0000u);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = widen(p[i]);
  }
}

template <int N>
__device__ inline void store(float* p, const float (&v)[N]) {
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 4) *reinterpret_cast<float4*>(p + i) = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) p[i] = v[i];
  }
}
template <int N>
__device__ inline void store(bf16* p, const float (&v)[N]) {
  if constexpr (N % 8 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 8)
      *reinterpret_cast<uint4*>(p + i) = make_uint4(pack_bf16(v[i], v[i + 1]), pack_bf16(v[i + 2], v[i + 3]), pack_bf16(v[i + 4], v[i + 5]),
                                                    pack_bf16(v[i + 6], v[i + 7]));
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) p[i] = narrow<bf16>(v[i]);
  }
}

// N elements as they lie in memory: half the registers of floats for bf16, where they have to wait.
template <class T, int N>
struct Raw {
  static constexpr bool kWide = N * sizeof(T) % 16 == 0;
  using Word = std::conditional_t<kWide, uint4, T>;
  static constexpr int kWords = kWide ? static_cast<int>(N * sizeof(T) / 16) : N;
  Word word[kWords];

  __device__ void load(const T* p) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) word[i] = reinterpret_cast<const Word*>(p)[i];
  }
  __device__ void store(T* p) const {
#pragma unroll
    for (int i = 0; i < kWords; ++i) reinterpret_cast<Word*>(p)[i] = word[i];
  }
  __device__ void floats(float (&v)[N]) const {
    if constexpr (!kWide) {
#pragma unroll
      for (int i = 0; i < N; ++i) v[i] = widen(word[i]);
    } else {
      uint32_t part[kWords * 4];
#pragma unroll
      for (int i = 0; i < kWords; ++i)
        part[4 * i] = word[i].x, part[4 * i + 1] = word[i].y, part[4 * i + 2] = word[i].z, part[4 * i + 3] = word[i].w;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if constexpr (sizeof(T) == 4)
          v[i] = __uint_as_float(part[i]);
        else
          v[i] = __uint_as_float(i % 2 == 0 ? part[i / 2] << 16 : part[i / 2] & 0xffff0000u);
      }
    }
  }
};

// RoPE of N pairs (a, b) by angles of which the cosines and sines are given; sign -1 is the inverse.
template <int N>
__device__ inline void rotate(float (&a)[N], float (&b)[N], const float (&cosine)[N], const float (&sine)[N], float sign) {
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const float u = a[j], v = b[j], s = sine[j] * sign;
    a[j] = u * cosine[j] - v * s;
    b[j] = v * cosine[j] + u * s;
  }
}

// e^x for x not above 0, as in a softmax.
__device__ inline float exp_nonpositive(float x) { return exp2_fast(x * 1.44269504088896341f); }

// Folds `mine` of all threads of the block with op, an associative function, in an order that depends only on the number of
// threads (a multiple of 32). Every thread gets the result. `shared` holds kWarp values and may be used again at once.
template <class V, class Op>
__device__ inline V block_fold(V mine, V neutral, V* shared, const Op& op) {
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
#pragma unroll
  for (int d = kWarp / 2; d > 0; d /= 2) mine = op(mine, __shfl_xor_sync(0xffffffffu, mine, d));
  if (warps == 1) return mine;
  if (lane == 0) shared[warp] = mine;
  __syncthreads();
  mine = lane < warps ? shared[lane] : neutral;
#pragma unroll
  for (int d = kWarp / 2; d > 0; d /= 2) mine = op(mine, __shfl_xor_sync(0xffffffffu, mine, d));
  __syncthreads();
  return mine;
}

template <class V>
__device__ inline V block_sum(V mine, V* shared) {
  return block_fold(mine, V{}, shared, [](V a, V b) { return a + b; });
}

// Calls f(T{}) with the element type of dtype.
template <class F>
void with_type(DType dtype, const F& f) {
  HLAT_CHECK(dtype == DType::f32 || dtype == DType::bf16, "the CUDA backend has no {} kernels", name_of(dtype));
  if (dtype == DType::f32)
    f(float{});
  else
    f(bf16{});
}

// Calls f(std::integral_constant<int, N>) with N = width when vectors fit, else with N = 1.
template <int Width, class F>
void with_width(bool fits, const F& f) {
  if (fits)
    f(std::integral_constant<int, Width>{});
  else
    f(std::integral_constant<int, 1>{});
}

// Whether 16-byte accesses are aligned in all of them.
inline bool aligned(std::initializer_list<const void*> pointers) {
  return std::all_of(pointers.begin(), pointers.end(), [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; });
}

inline dim3 grid_of(int64_t items, int64_t per_block) { return {static_cast<unsigned>(ceil_div(items, per_block))}; }

// Threads of a block that works on one row of `items` pieces, `each` of them per thread while there are threads.
inline unsigned row_threads(int64_t items, int64_t each) {
  return static_cast<unsigned>(std::clamp<int64_t>(ceil_div(ceil_div(items, each), kWarp) * kWarp, kWarp, 1024));
}

}  // namespace hlat
