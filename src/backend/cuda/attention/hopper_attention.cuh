// What the kernels of the Hopper attention backward share.
#pragma once

#include <cuda_bf16.h>

#include "backend/cuda/attention/hopper_attention.h"
#include "backend/cuda/gpu.cuh"
#include "backend/cuda/hopper.cuh"

namespace hlat::hopper {

template <int kHead>
constexpr int kQueries = hopper_queries(kHead);

// Row of a token in dqkv, from a head on: q heads, then k heads, then v heads.
template <int kHead>
__device__ __nv_bfloat16* gradient_at(const BackwardCall& c, int64_t batch, int64_t token, int64_t head) {
  const int64_t heads = c.heads + 2 * c.kv_heads;
  return static_cast<__nv_bfloat16*>(c.dqkv) + ((batch * c.seq + token) * heads + head) * kHead;
}

// The inverse RoPE of elements i and i + E/2 of two neighbouring columns, with the angles that a row of the table has from `angle` on.
template <int kHead>
__device__ void inverse_rope(float2& x, float2& y, const float* angle) {
  const float2 cosine = *reinterpret_cast<const float2*>(angle), sine = *reinterpret_cast<const float2*>(angle + kHead / 2);
  const float2 first = make_float2(x.x * cosine.x + y.x * sine.x, x.y * cosine.y + y.y * sine.y);
  y = make_float2(y.x * cosine.x - x.x * sine.x, y.y * cosine.y - x.y * sine.y);
  x = first;
}

}  // namespace hlat::hopper
