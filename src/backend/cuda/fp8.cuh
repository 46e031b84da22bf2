// FP8 in kernels: codes by the GPU's own conversion, with the rule of base/fp8.h for what is not finite, and the numbers of an Fp8Seen,
// which are exact in any order: a maximum, and sums of integers.
#pragma once

#include <cuda_fp8.h>

#include "backend/cuda/device.cuh"
#include "base/fp8.h"
#include "ops/fp8.h"

namespace hlat {

template <class F8>
constexpr float kLargestFp8 = std::is_same_v<F8, f8e4m3> ? kLargestE4M3 : kLargestE5M2;
template <class F8>
constexpr __nv_fp8_interpretation_t kFp8Kind = std::is_same_v<F8, f8e4m3> ? __NV_E4M3 : __NV_E5M2;

// Calls f(F8{}) with the element type of dtype.
template <class F>
void with_fp8(DType dtype, const F& f) {
  if (dtype == DType::f8e4m3)
    f(f8e4m3{});
  else
    f(f8e5m2{});
}

// Calls f(std::bool_constant): whether what is seen is counted.
template <class F>
void with_count(const Tensor& seen, const F& f) {
  if (seen.defined())
    f(std::true_type{});
  else
    f(std::false_type{});
}

// Four codes, that of `a` in the lowest byte: rounded to the nearest even and saturated, infinity too.
template <class F8>
__device__ inline uint32_t pack_fp8(float a, float b, float c, float d) {
  const uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, kFp8Kind<F8>);
  const uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, kFp8Kind<F8>);
  return low | high << 16;
}

// Makes codes of values and, with Count, keeps what its thread has seen; publish() adds that of a block to an Fp8Seen.
template <class F8, bool Count>
class Fp8Encoder {
 public:
  // The inverse of a power of two is a subtraction of exponents.
  __device__ explicit Fp8Encoder(const float* scale) : scale_(*scale) {
    limit_ = fminf(kLargestFp8<F8> * __uint_as_float(0x7f000000u - __float_as_uint(scale_)), kFinite);
  }

  // A test per N values finds those that need more than the conversion.
  template <int N>
  __device__ void encode(uint32_t (&code)[N / 4], const float (&v)[N]) {
    float top = 0;
    uint32_t high = kHigh;
#pragma unroll
    for (int j = 0; j < N; ++j) top = max_or_nan(top, fabsf(v[j]));
#pragma unroll
    for (int k = 0; k < N / 4; ++k) {
      code[k] = pack_fp8<F8>(v[4 * k] * scale_, v[4 * k + 1] * scale_, v[4 * k + 2] * scale_, v[4 * k + 3] * scale_);
      high &= not_zero(code[k]);
    }
    if constexpr (Count) {
      top_ = max_or_nan(top_, top);
      if (high != kHigh) count_lost(code, v);
    }
    if (!(top <= limit_)) beyond(code, v);
  }

  __device__ uint8_t encode_one(float v) {
    const bool finite = fabsf(v) <= kFinite;
    const uint32_t code = finite ? pack_fp8<F8>(v * scale_, 0, 0, 0) : nan_of(v);
    if constexpr (Count) {
      top_ = max_or_nan(top_, fabsf(v));
      lost_ += (code & 0x7fu) == 0 && v != 0 ? 1 : 0;
      saturated_ += finite && fabsf(v) > limit_ ? 1 : 0;
    }
    return static_cast<uint8_t>(code);
  }

  // By all threads of the block, once.
  __device__ void publish(double* seen) const {
    if constexpr (Count) {
      __shared__ uint32_t total[3];
      if (threadIdx.x < 3) total[threadIdx.x] = 0;
      __syncthreads();
      const uint32_t mine[3] = {__reduce_max_sync(~0u, __float_as_uint(top_)), __reduce_add_sync(~0u, saturated_),
                                __reduce_add_sync(~0u, lost_)};
      if (threadIdx.x % kWarp == 0) {
        atomicMax(total, mine[0]);
        if (mine[1] != 0) atomicAdd(total + 1, mine[1]);
        if (mine[2] != 0) atomicAdd(total + 2, mine[2]);
      }
      __syncthreads();
      if (threadIdx.x != 0) return;
      if (total[0] != 0) atomicMax(reinterpret_cast<unsigned long long*>(seen), wide_bits(total[0]));
      if (total[1] != 0) atomicAdd(seen + 1, static_cast<double>(total[1]));
      if (total[2] != 0) atomicAdd(seen + 2, static_cast<double>(total[2]));
    }
  }

 private:
  static constexpr float kFinite = 3.4028234663852886e38f;
  static constexpr uint32_t kHigh = 0x80808080u;

  // The high bit of each byte: whether the code there is neither 0 nor -0.
  __device__ static uint32_t not_zero(uint32_t code) { return (code & ~kHigh) + ~kHigh; }
  __device__ static uint32_t nan_of(float v) { return 0x7fu | (__float_as_uint(v) >> 24 & 0x80u); }
  // Bits of f32 above or at 0 as those of f64, whose order is the same; NaN is above all.
  __device__ static unsigned long long wide_bits(uint32_t bits) {
    if (bits > 0x7f800000u) return 0x7ff8000000000000ull;
    return static_cast<unsigned long long>(__double_as_longlong(static_cast<double>(__uint_as_float(bits))));
  }

  // Codes that are 0, less the values that are.
  template <int N>
  __device__ void count_lost(const uint32_t (&code)[N / 4], const float (&v)[N]) {
#pragma unroll
    for (int k = 0; k < N / 4; ++k) lost_ += static_cast<uint32_t>(__popc(~not_zero(code[k]) & kHigh));
#pragma unroll
    for (int j = 0; j < N; ++j) lost_ -= v[j] == 0 ? 1 : 0;
  }

  template <int N>
  __device__ void beyond(uint32_t (&code)[N / 4], const float (&v)[N]) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const bool finite = fabsf(v[j]) <= kFinite;
      const int shift = j % 4 * 8;
      if (!finite) code[j / 4] = (code[j / 4] & ~(0xffu << shift)) | nan_of(v[j]) << shift;
      if constexpr (Count) saturated_ += finite && fabsf(v[j]) > limit_ ? 1 : 0;
    }
  }

  float scale_, limit_;  // limit_: values above it saturate
  float top_ = 0;
  uint32_t saturated_ = 0, lost_ = 0;
};

// 4 or 8 codes to an address that is aligned for them.
__device__ inline void put_codes(uint8_t* to, const uint32_t (&code)[1]) { *reinterpret_cast<uint32_t*>(to) = code[0]; }
__device__ inline void put_codes(uint8_t* to, const uint32_t (&code)[2]) { *reinterpret_cast<uint2*>(to) = make_uint2(code[0], code[1]); }

// Rows and columns of 4 x 4 bytes change places.
__device__ inline void transpose_bytes(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d) {
  const uint32_t ab = __byte_perm(a, b, 0x5140), ab_high = __byte_perm(a, b, 0x7362);
  const uint32_t cd = __byte_perm(c, d, 0x5140), cd_high = __byte_perm(c, d, 0x7362);
  a = __byte_perm(ab, cd, 0x5410);
  b = __byte_perm(ab, cd, 0x7632);
  c = __byte_perm(ab_high, cd_high, 0x5410);
  d = __byte_perm(ab_high, cd_high, 0x7632);
}

}  // namespace hlat
