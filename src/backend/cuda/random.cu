// Casts, fills and normal numbers. Random values follow the global element: noise.cuh and base/rng.h.
#include "backend/cuda/noise.cuh"
#include "base/fp8.h"

namespace hlat {

namespace {

constexpr int kGroup = 8;

// Vectors: whether 16-byte accesses are aligned. A thread does one group of eight elements.
template <class D, class S, bool Vectors, bool Stochastic>
__global__ void cast_kernel(D* dst, const S* src, int64_t n, DeviceKey key, ElementMap map) {
  const int64_t e = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * kGroup;
  if (e >= n) return;
  const int count = n - e < kGroup ? static_cast<int>(n - e) : kGroup;
  float v[kGroup] = {};
  if (Vectors && count == kGroup) {
    load(v, src + e);
  } else {
#pragma unroll
    for (int j = 0; j < kGroup; ++j)
      if (j < count) v[j] = widen(src[e + j]);
  }
  if constexpr (Stochastic) {
    const Halves<kGroup> bits = round_stochastic(v, noise_of<kGroup>(key, map, e, group_at<kGroup>(map, e), count));
    if (Vectors && count == kGroup) {
      store_halves(dst + e, bits);
    } else {
#pragma unroll
      for (int j = 0; j < kGroup; ++j)
        if (j < count) dst[e + j] = bits[j];
    }
  } else if (Vectors && count == kGroup) {
    store(dst + e, v);
  } else {
#pragma unroll
    for (int j = 0; j < kGroup; ++j)
      if (j < count) dst[e + j] = narrow<D>(v[j]);
  }
}

// 16 bytes at a time from an aligned address; the thread after the last of them does the rest.
template <class T>
__global__ void fill_kernel(T* p, int64_t n, T value) {
  constexpr int kCount = kVector<T>;
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * kCount;
  if (i + kCount <= n && reinterpret_cast<uintptr_t>(p) % 16 == 0) {
    alignas(16) T v[kCount];
#pragma unroll
    for (int j = 0; j < kCount; ++j) v[j] = value;
    *reinterpret_cast<uint4*>(p + i) = *reinterpret_cast<const uint4*>(v);
  } else {
    for (int64_t j = i; j < n && j < i + kCount; ++j) p[j] = value;
  }
}

// As normal_block of base/rng.h, in f64: initial weights must not depend on the device.
template <class T>
__global__ void fill_normal_kernel(T* p, int64_t n, double std, DeviceKey key, ElementMap map) {
  const int64_t begin = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * 4, end = begin + 4 < n ? begin + 4 : n;
  double radius = 0, angle = 0;
  int64_t have = -1;
  for (int64_t e = begin; e < end; ++e) {
    const int64_t g = global_of(map, e);
    if (g / 2 != have) {  // a pair shares radius and angle
      have = g / 2;
      const uint4 w = philox_block(key, static_cast<uint64_t>(g) / 4);
      const uint32_t a = have % 2 == 0 ? w.x : w.z, b = have % 2 == 0 ? w.y : w.w;
      radius = sqrt(-2.0 * log((a + 1.0) * 0x1p-32));
      angle = 2.0 * 3.141592653589793238 * (b * 0x1p-32);
    }
    const float normal = static_cast<float>(radius * (g % 2 == 0 ? cos(angle) : sin(angle)));
    p[e] = narrow<T>(static_cast<float>(static_cast<double>(normal) * std));
  }
}

template <class T>
void fill_with(const Tensor& t, T value, cudaStream_t stream) {
  launch(fill_kernel<T>, grid_of(t.numel(), kBlock * kVector<T>), kBlock, stream, t.as<T>(), t.numel(), value);
}

}  // namespace

void CudaOps::do_cast(Tensor dst, Tensor src, Rounding rounding, NoiseKey key, const ElementMap& map) {
  const int64_t n = dst.numel();
  if (n == 0) return;
  if (dst.dtype == src.dtype) {
    if (dst.data != src.data) HLAT_CUDA(cudaMemcpyAsync(dst.data, src.data, dst.bytes(), cudaMemcpyDefault, stream()));
    return;
  }
  const bool vectors = aligned({dst.data, src.data}), stochastic = dst.dtype == DType::bf16 && rounding == Rounding::stochastic;
  const auto run = [&](auto d, auto s, auto random) {
    using D = decltype(d);
    using S = decltype(s);
    const auto kernel = vectors ? cast_kernel<D, S, true, random()> : cast_kernel<D, S, false, random()>;
    launch(kernel, grid_of(n, kBlock * kGroup), kBlock, stream(), dst.as<D>(), src.as<S>(), n, device_key(key), map);
  };
  if (dst.dtype == DType::f32)
    run(float{}, bf16{}, std::false_type{});
  else if (stochastic)
    run(bf16{}, float{}, std::true_type{});
  else
    run(bf16{}, float{}, std::false_type{});
}

void CudaOps::do_fill(Tensor t, double value) {
  if (t.numel() == 0) return;
  if (value == 0) {  // zero is all bits zero in each type; minus zero is as good
    HLAT_CUDA(cudaMemsetAsync(t.data, 0, t.bytes(), stream()));
    return;
  }
  switch (t.dtype) {
    case DType::f32: return fill_with(t, static_cast<float>(value), stream());
    case DType::bf16: return fill_with(t, to_bf16(static_cast<float>(value)), stream());
    case DType::i32: return fill_with(t, static_cast<int32_t>(value), stream());
    case DType::f64: return fill_with(t, value, stream());
    case DType::f8e4m3: return HLAT_CUDA(cudaMemsetAsync(t.data, to_e4m3(static_cast<float>(value)).bits, t.bytes(), stream()));
    case DType::f8e5m2: return HLAT_CUDA(cudaMemsetAsync(t.data, to_e5m2(static_cast<float>(value)).bits, t.bytes(), stream()));
  }
}

void CudaOps::do_fill_normal(Tensor t, double std, NoiseKey key, const ElementMap& map) {
  if (t.numel() == 0) return;
  with_type(t.dtype, [&](auto e) {
    using T = decltype(e);
    launch(fill_normal_kernel<T>, grid_of(t.numel(), kBlock * 4), kBlock, stream(), t.as<T>(), t.numel(), std, device_key(key), map);
  });
}

}  // namespace hlat
