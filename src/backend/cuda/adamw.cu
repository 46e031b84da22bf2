// AdamW in one pass over weight, master, moments and gradient, in any mix of types. The update uses the new moments before they are
// rounded for storage; stores round to nearest or with the noise of the global element. A thread does groups of eight elements, the
// elements of one Philox block. The squares of the stored weights are summed per block, then over the blocks (reduce.cuh).
#include <cmath>

#include "backend/cuda/noise.cuh"
#include "backend/cuda/reduce.cuh"

namespace hlat {

namespace {

constexpr int kGroup = 8;

struct AdamwArgs {
  void* weight;
  float* master;  // or null
  void *m, *v;
  const void* grad;
  const float* scale;
  double* parts;
  int64_t n;
  float beta1, beta2, eps, decay_factor, rate, correction2_rsqrt;
  DeviceKey key;  // its purpose is set per store
  ElementMap map;
};

template <class T, bool Vectors>
__device__ inline void load_group(float (&v)[kGroup], const T* p, int count) {
  if (Vectors && count == kGroup) {
    load(v, p);
  } else {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) v[j] = j < count ? widen(p[j]) : 0.0f;
  }
}

// Stores v rounded to T, and tells what was stored where that is asked.
template <class T, bool Vectors, bool Stochastic, bool Tell = false>
__device__ inline void store_group(T* p, float (&v)[kGroup], int count, const AdamwArgs& a, Noise purpose, int64_t e, const Group& group) {
  if constexpr (std::is_same_v<T, float>) {
    if (Vectors && count == kGroup) {
      store(p, v);
    } else {
#pragma unroll
      for (int j = 0; j < kGroup; ++j)
        if (j < count) p[j] = v[j];
    }
  } else {
    uint4 bits;
    if constexpr (Stochastic) {
      DeviceKey key = a.key;
      key.purpose = static_cast<uint32_t>(purpose);
      bits = round_stochastic(v, noise_of(key, a.map, e, group, count));
    } else {
      bits = make_uint4(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]), pack_bf16(v[6], v[7]));
    }
    if (Vectors && count == kGroup) {
      *reinterpret_cast<uint4*>(p) = bits;
    } else {
#pragma unroll
      for (int j = 0; j < kGroup; ++j)
        if (j < count) p[j] = half_of(bits, j);
    }
    if constexpr (Tell) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) v[j] = widen(half_of(bits, j));
    }
  }
}

__device__ inline double sum_of_squares(const float (&w)[kGroup], int count) {
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) sum += j < count ? w[j] * w[j] : 0.0f;
  return static_cast<double>(sum);
}

template <class W, class M, class G, bool Vectors, bool Stochastic>
__global__ void __launch_bounds__(kBlock) adamw_kernel(const AdamwArgs a) {
  __shared__ double shared[kWarp];
  const float scale = *a.scale;
  double squares = 0;
  for (int64_t e = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * kGroup; e < a.n; e += int64_t{gridDim.x} * kBlock * kGroup) {
    const int count = a.n - e < kGroup ? static_cast<int>(a.n - e) : kGroup;
    W* weight = static_cast<W*>(a.weight) + e;
    M *m1 = static_cast<M*>(a.m) + e, *m2 = static_cast<M*>(a.v) + e;
    float w[kGroup], m[kGroup], v[kGroup], g[kGroup];
    load_group<G, Vectors>(g, static_cast<const G*>(a.grad) + e, count);
    load_group<M, Vectors>(m, m1, count);
    load_group<M, Vectors>(v, m2, count);
    if (a.master != nullptr)
      load_group<float, Vectors>(w, a.master + e, count);
    else
      load_group<W, Vectors>(w, weight, count);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      const float d = g[j] * scale;
      m[j] = a.beta1 * m[j] + (1.0f - a.beta1) * d;
      v[j] = a.beta2 * v[j] + (1.0f - a.beta2) * (d * d);
      w[j] = w[j] * a.decay_factor - __fdividef(a.rate * m[j], sqrt_fast(v[j]) * a.correction2_rsqrt + a.eps);
    }
    const Group group = Stochastic ? group_at(a.map, e) : Group{};
    store_group<M, Vectors, Stochastic>(m1, m, count, a, Noise::round_moment1, e, group);
    store_group<M, Vectors, Stochastic>(m2, v, count, a, Noise::round_moment2, e, group);
    if (a.master != nullptr) {
      store_group<float, Vectors, false>(a.master + e, w, count, a, Noise::round_weight, e, group);
      squares += sum_of_squares(w, count);
      store_group<W, Vectors, Stochastic>(weight, w, count, a, Noise::round_weight, e, group);
    } else {
      store_group<W, Vectors, Stochastic, true>(weight, w, count, a, Noise::round_weight, e, group);
      squares += sum_of_squares(w, count);
    }
  }
  const double total = block_sum(squares, shared);
  if (threadIdx.x == 0) a.parts[blockIdx.x] = total;
}

template <class W, class M, class G>
void run_adamw(const AdamwArgs& a, bool vectors, bool stochastic, int64_t parts, cudaStream_t stream) {
  auto kernel = vectors ? adamw_kernel<W, M, G, true, false> : adamw_kernel<W, M, G, false, false>;
  if constexpr (std::is_same_v<W, bf16> || std::is_same_v<M, bf16>)
    if (stochastic) kernel = vectors ? adamw_kernel<W, M, G, true, true> : adamw_kernel<W, M, G, false, true>;
  launch(kernel, grid_of(parts, 1), kBlock, stream, a);
}

}  // namespace

void CudaOps::do_adamw(const AdamwTensors& t, const AdamwScalars& s, Tensor scratch) {
  const double step = static_cast<double>(s.step);
  const float correction1 = static_cast<float>(1.0 / (1.0 - std::pow(static_cast<double>(s.beta1), step)));
  const AdamwArgs args{
      .weight = t.weight.data,
      .master = t.master.defined() ? t.master.as<float>() : nullptr,
      .m = t.m.data,
      .v = t.v.data,
      .grad = t.grad.data,
      .scale = t.scale.as<float>(),
      .parts = scratch.as<double>(),
      .n = t.weight.numel(),
      .beta1 = s.beta1,
      .beta2 = s.beta2,
      .eps = s.eps,
      .decay_factor = 1.0f - s.lr * s.weight_decay,
      .rate = s.lr * correction1,
      .correction2_rsqrt = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(static_cast<double>(s.beta2), step))),
      .key = device_key({.seed = s.seed, .stream = s.stream, .step = static_cast<uint32_t>(s.step)}),
      .map = s.map,
  };
  const bool vectors = aligned({args.weight, args.master, args.m, args.v, args.grad}), stochastic = s.rounding == Rounding::stochastic;
  const int64_t parts = reduce_parts(args.n);
  with_type(t.weight.dtype, [&](auto w) {
    with_type(t.m.dtype, [&](auto m) {
      with_type(t.grad.dtype,
                [&](auto g) { run_adamw<decltype(w), decltype(m), decltype(g)>(args, vectors, stochastic, parts, stream()); });
    });
  });
  fold_parts(t.weight_sq.as<double>(), args.parts, parts, stream());
}

}  // namespace hlat
