// The passes before and after the Hopper attention backward; both are bound by memory.
#include <cmath>

#include "backend/cuda/attention/hopper_attention.cuh"

namespace hlat::hopper {

namespace {

constexpr unsigned kBlock = 256;

template <int kHead>
__global__ void prepare_kernel(OwnAttention x, int64_t padded, float* lse, float* delta) {
  constexpr int kLanes = kHead / 8;  // of a row; the rows, (B, padded, H), fill whole blocks of threads
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x) / kLanes;
  const int64_t h = row % x.heads, t = row / x.heads % padded, b = row / x.heads / padded;
  const int64_t to = (b * x.heads + h) * padded + t;
  float sum = 0;
  if (t < x.seq) {
    const int64_t at = ((b * x.seq + t) * x.heads + h) * kHead + threadIdx.x % kLanes * 8;
    const uint4 a = *reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(x.out) + at);
    const uint4 g = *reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(x.dout) + at);
    const auto* out = reinterpret_cast<const __nv_bfloat162*>(&a);
    const auto* dout = reinterpret_cast<const __nv_bfloat162*>(&g);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 o = __bfloat1622float2(out[i]), d = __bfloat1622float2(dout[i]);
      sum += o.x * d.x + o.y * d.y;
    }
  }
#pragma unroll
  for (int lane = 1; lane < kLanes; lane *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
  if (threadIdx.x % kLanes != 0) return;
  delta[to] = sum;
  lse[to] = t < x.seq ? x.lse[(b * x.heads + h) * x.seq + t] * kLog2e : INFINITY;
}

// Lane t of four has piece v in x[v]; afterwards piece t of lane v.
__device__ inline void exchange(uint32_t (&x)[4]) {
#pragma unroll
  for (unsigned step = 1; step < 4; step *= 2)
#pragma unroll
    for (unsigned low = 0; low < 4; ++low) {
      if ((low & step) != 0) continue;
      const bool high_lane = (threadIdx.x & step) != 0;
      const uint32_t got = __shfl_xor_sync(0xffffffffu, high_lane ? x[low] : x[low | step], step);
      (high_lane ? x[low] : x[low | step]) = got;
    }
}

// A thread has rows r and r + 8 of the columns 8 i + 2 (lane % 4) and the next, as the product left them: four floats for each i. The
// first half of the head is in low, the second in high.
template <int kHead>
__global__ void __launch_bounds__(128) finish_kernel(const __grid_constant__ BackwardCall c) {
  constexpr int kHalf = kHead / 16;            // groups of 8 columns in half a head
  constexpr int kParts = kHead == 64 ? 2 : 1;  // of a tile, each with its own queries
  constexpr int kQ = kQueries<kHead>;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, column = lane % 4 * 2;
  const int64_t tiles = c.padded / kQ, part = blockIdx.x % kParts, tile = blockIdx.x / kParts % tiles;
  const int64_t head = blockIdx.x / kParts / tiles, h = head % c.heads, b = head / c.heads;
  const auto* from = reinterpret_cast<const float4*>(c.dq + ((head * tiles + tile) * 2 + part) * kPart) + threadIdx.x;
  float4 low[kHalf], high[kHalf];
#pragma unroll
  for (int i = 0; i < kHalf; ++i) low[i] = from[128 * i], high[i] = from[128 * (i + kHalf)];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t token = tile * kQ + 64 * part + 16 * warp + lane / 4 + 8 * half;
    const bool inside = token < c.seq;
    uint32_t packed[2][kHalf];
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      float2 x = half == 0 ? make_float2(low[i].x, low[i].y) : make_float2(low[i].z, low[i].w);
      float2 y = half == 0 ? make_float2(high[i].x, high[i].y) : make_float2(high[i].z, high[i].w);
      if (c.rope != nullptr && inside) inverse_rope<kHead>(x, y, c.rope + token * kHead + 8 * i + column);
      packed[0][i] = pack_bf16(x.x * c.scale, x.y * c.scale);
      packed[1][i] = pack_bf16(y.x * c.scale, y.y * c.scale);
    }
    __nv_bfloat16* to = gradient_at<kHead>(c, b, token, h) + lane % 4 * 8;
#pragma unroll
    for (int side = 0; side < 2; ++side)
#pragma unroll
      for (int four = 0; four < kHalf; four += 4) {
        uint32_t piece[4] = {packed[side][four], packed[side][four + 1], packed[side][four + 2], packed[side][four + 3]};
        exchange(piece);
        if (inside) *reinterpret_cast<uint4*>(to + side * (kHead / 2) + 8 * four) = make_uint4(piece[0], piece[1], piece[2], piece[3]);
      }
  }
}

}  // namespace

cudaError_t prepare(cudaStream_t stream, const OwnAttention& x, const BackwardCall& c) {
  const auto blocks = static_cast<unsigned>(x.batch * x.heads * c.padded * (x.head_dim / 8) / kBlock);
  const auto kernel = x.head_dim == 64 ? prepare_kernel<64> : prepare_kernel<128>;
  kernel<<<blocks, kBlock, 0, stream>>>(x, c.padded, c.lse, c.delta);
  return cudaGetLastError();
}

cudaError_t finish(cudaStream_t stream, const OwnAttention& x, const BackwardCall& c) {
  const auto blocks = static_cast<unsigned>(x.batch * x.heads * c.padded / 64);
  const auto kernel = x.head_dim == 64 ? finish_kernel<64> : finish_kernel<128>;
  kernel<<<blocks, 128, 0, stream>>>(c);
  return cudaGetLastError();
}

}  // namespace hlat::hopper
