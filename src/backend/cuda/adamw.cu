// AdamW in one pass over weight, master, moments and gradient, in any mix of types. The update uses the new moments before they are
// rounded for storage; stores round to nearest or with the noise of the global element. A thread does groups of four or eight
// elements, half a Philox block or a whole one. Many tensors go into one launch. The squares of the stored weights are summed per block,
// then over the blocks (reduce.cuh). A measured update is a kernel of its own, which also tells what it changed (AdamwChange): the numbers
// of a block stand one grid apart in the scratch. Of a weight in FP8 the master is updated as a weight without one is, and the codes are
// made of what was stored: another kernel of its own.
#include "backend/cuda/fp8.cuh"
#include "backend/cuda/noise.cuh"
#include "backend/cuda/reduce.cuh"
#include "ops/gpu_scratch.h"

namespace hlat {

namespace {

struct Item {
  void* weight;   // or the master of a weight in FP8
  float* master;  // or null
  void *m, *v;
  const void* grad;
  int64_t n;
  ElementMap map;
  float weight_decay;
  uint32_t key0, key1;
  // Of a weight in FP8.
  uint8_t* codes;
  const float* code_scale;
  double* seen;
};

struct AdamwArgs {
  Item item[kBatch];
  int first[kBatch + 1];
  int count;
  const float* scale;
  const AdamwStep* step;
  double* parts;
  float beta1, beta2, eps;
};
static_assert(sizeof(AdamwArgs) <= 4096, "the arguments of a kernel");

// What a thread needs of the step, in f32.
struct StepScalars {
  float scale, rate, correction2_rsqrt, decay_factor;
  uint32_t number;
};

// Every operation rounds by itself: contracted to a fused one it would have other bits.
__device__ inline StepScalars scalars_of(const AdamwStep& s, float scale, float weight_decay) {
  const float lr = static_cast<float>(s.lr);
  return {scale, __fmul_rn(lr, static_cast<float>(s.correction1)), static_cast<float>(s.correction2_rsqrt),
          __fsub_rn(1.0f, __fmul_rn(lr, weight_decay)), static_cast<uint32_t>(static_cast<int64_t>(s.number))};
}

template <bool Vectors, class T, int N>
__device__ inline void load_group(float (&v)[N], const T* p, int count) {
  if constexpr (Vectors) {
    load(v, p);
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j) v[j] = j < count ? widen(p[j]) : 0.0f;
  }
}

// Where and as what N elements are stored.
template <class T, int N, bool Vectors, bool Stochastic>
struct Store {
  const Item& item;
  uint32_t step;
  int64_t e;
  int count;
  Group group;

  // Rounds v to T and stores it; v is then what was stored.
  __device__ void operator()(T* p, float (&v)[N], Noise purpose) const {
    if constexpr (std::is_same_v<T, float>) {
      if constexpr (Vectors) {
        store(p, v);
      } else {
#pragma unroll
        for (int j = 0; j < N; ++j)
          if (j < count) p[j] = v[j];
      }
    } else {
      Halves<N> bits;
      if constexpr (Stochastic)
        bits = round_stochastic(v, noise_of<N>({item.key0, item.key1, step, static_cast<uint32_t>(purpose)}, item.map, e, group, count));
      else
        bits = round_nearest(v);
      if constexpr (Vectors) {
        store_halves(p, bits);
      } else {
#pragma unroll
        for (int j = 0; j < N; ++j)
          if (j < count) p[j] = bits[j];
      }
#pragma unroll
      for (int j = 0; j < N; ++j) v[j] = widen(bits[j]);
    }
  }
};

// Of the values that one thread updates; then of a block and of a tensor.
__device__ inline AdamwChange no_change() { return {0, 0, 0, INFINITY, 0}; }

__device__ inline AdamwChange merged(const AdamwChange& a, const AdamwChange& b) {
  return {a.change_sq + b.change_sq, a.unchanged + b.unchanged, fmax(a.m_max, b.m_max), fmin(a.v_min, b.v_min), fmax(a.v_max, b.v_max)};
}

template <int N>
__device__ inline void add_change(AdamwChange& c, const float (&old)[N], const float (&w)[N], const float (&m)[N], const float (&v)[N],
                                  int count) {
  float squares = 0, m_max = 0, v_min = INFINITY, v_max = 0;
  int equal = 0;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (j >= count) continue;
    const float d = w[j] - old[j];
    squares += d * d;
    equal += w[j] == old[j] ? 1 : 0;
    m_max = fmaxf(m_max, fabsf(m[j]));
    v_max = fmaxf(v_max, v[j]);
    if (v[j] > 0) v_min = fminf(v_min, v[j]);
  }
  c = merged(c, {static_cast<double>(squares), static_cast<double>(equal), static_cast<double>(m_max), static_cast<double>(v_min),
                 static_cast<double>(v_max)});
}

// Of all threads of a block, on thread 0.
__device__ inline AdamwChange block_change(const AdamwChange& mine, double* shared) {
  const auto plus = [](double a, double b) { return a + b; };
  const auto most = [](double a, double b) { return fmax(a, b); };
  const auto least = [](double a, double b) { return fmin(a, b); };
  AdamwChange c;
  c.change_sq = block_fold(mine.change_sq, 0.0, shared, plus);
  c.unchanged = block_fold(mine.unchanged, 0.0, shared, plus);
  c.m_max = block_fold(mine.m_max, 0.0, shared, most);
  c.v_min = block_fold(mine.v_min, static_cast<double>(INFINITY), shared, least);
  c.v_max = block_fold(mine.v_max, 0.0, shared, most);
  return c;
}

template <int N>
__device__ inline double sum_of_squares(const float (&w)[N], int count) {
  float sum = 0;
#pragma unroll
  for (int j = 0; j < N; ++j) sum += j < count ? w[j] * w[j] : 0.0f;
  return static_cast<double>(sum);
}

// What a thread makes codes of a weight in FP8 with; nothing for other weights.
struct NoCodes {
  __device__ explicit NoCodes(const float*) {}
};
template <bool Fp8>
using CodesOf = std::conditional_t<Fp8, Fp8Encoder<f8e4m3, true>, NoCodes>;

template <bool Vectors, int N>
__device__ inline void encode_to(CodesOf<true>& encoder, uint8_t* p, const float (&w)[N], int count) {
  if constexpr (Vectors) {
    uint32_t code[N / 4];
    encoder.encode(code, w);
    put_codes(p, code);
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (j < count) p[j] = encoder.encode_one(w[j]);
  }
}

// Elements [e, e + count) of an item; returns the sum of the squares of what is now the master, or the weight without one.
template <class W, class M, class G, int N, bool Vectors, bool NoisyWeights, bool NoisyMoments, bool Measured, bool Fp8>
__device__ inline double update(const AdamwArgs& args, const Item& a, const StepScalars& s, int64_t e, int count, AdamwChange& change,
                                CodesOf<Fp8>& codes) {
  const bool has_master = !Fp8 && a.master != nullptr;
  W* weight = static_cast<W*>(a.weight) + e;
  M *m1 = static_cast<M*>(a.m) + e, *m2 = static_cast<M*>(a.v) + e;
  float w[N], m[N], v[N], g[N];
  load_group<Vectors>(g, static_cast<const G*>(a.grad) + e, count);
  load_group<Vectors>(m, m1, count);
  load_group<Vectors>(v, m2, count);
  if (has_master)
    load_group<Vectors>(w, a.master + e, count);
  else
    load_group<Vectors>(w, weight, count);
  float old[N];
  if constexpr (Measured) {
#pragma unroll
    for (int j = 0; j < N; ++j) old[j] = w[j];
  }
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const float d = g[j] * s.scale;
    m[j] = args.beta1 * m[j] + (1.0f - args.beta1) * d;
    v[j] = args.beta2 * v[j] + (1.0f - args.beta2) * (d * d);
    w[j] = w[j] * s.decay_factor - __fdividef(s.rate * m[j], sqrt_fast(v[j]) * s.correction2_rsqrt + args.eps);
  }
  const Group group = NoisyWeights || NoisyMoments ? group_at<N>(a.map, e) : Group{};
  const Store<M, N, Vectors, NoisyMoments> moment{a, s.number, e, count, group};
  moment(m1, m, Noise::round_moment1);
  moment(m2, v, Noise::round_moment2);
  double squares = 0;
  if (has_master) {
    Store<float, N, Vectors, false>{a, s.number, e, count, group}(a.master + e, w, Noise::round_weight);
    squares = sum_of_squares(w, count);
    if constexpr (Measured) add_change(change, old, w, m, v, count);
  }
  Store<W, N, Vectors, NoisyWeights>{a, s.number, e, count, group}(weight, w, Noise::round_weight);
  if constexpr (Measured)
    if (!has_master) add_change(change, old, w, m, v, count);
  if constexpr (Fp8) encode_to<Vectors>(codes, a.codes + e, w, count);
  return has_master ? squares : sum_of_squares(w, count);
}

// N: elements of a thread, 16 bytes of the widest type, so that a warp's accesses are dense.
template <class W, class M, class G, int N, bool Vectors, bool NoisyWeights, bool NoisyMoments, bool Measured, bool Fp8>
__global__ void __launch_bounds__(kBlock) adamw_kernel(const __grid_constant__ AdamwArgs args) {
  __shared__ double shared[kWarp];
  const float scale = *args.scale;
  if (isnan(scale)) {  // bad gradients: nothing changes
    const int numbers = Measured ? 1 + static_cast<int>(kAdamwChange) : 1;
    if (threadIdx.x == 0)
      for (int k = 0; k < numbers; ++k) args.parts[k * gridDim.x + blockIdx.x] = static_cast<double>(scale);
    return;
  }
  const Share share = share_of(args.first, args.count);
  const Item a = args.item[share.item];
  const StepScalars s = scalars_of(*args.step, scale, a.weight_decay);
  double squares = 0;
  AdamwChange change = no_change();
  CodesOf<Fp8> codes(a.code_scale);
  for (int64_t e = (int64_t{share.block} * kBlock + threadIdx.x) * N; e < a.n; e += int64_t{share.blocks} * kBlock * N) {
    if (Vectors && e + N <= a.n)
      squares += update<W, M, G, N, Vectors, NoisyWeights, NoisyMoments, Measured, Fp8>(args, a, s, e, N, change, codes);
    else
      squares += update<W, M, G, N, false, NoisyWeights, NoisyMoments, Measured, Fp8>(
          args, a, s, e, a.n - e < N ? static_cast<int>(a.n - e) : N, change, codes);
  }
  if constexpr (Fp8) codes.publish(a.seen);
  const double total = block_sum(squares, shared);
  if (threadIdx.x == 0) args.parts[blockIdx.x] = total;
  if constexpr (Measured) {
    const AdamwChange c = block_change(change, shared);
    if (threadIdx.x != 0) return;
    const double numbers[] = {c.change_sq, c.unchanged, c.m_max, c.v_min, c.v_max};
    for (int k = 0; k < static_cast<int>(kAdamwChange); ++k) args.parts[(k + 1) * gridDim.x + blockIdx.x] = numbers[k];
  }
}

// What is to be folded into out[i]: the parts of item i, `stride` from number to number.
struct ChangeFold {
  AdamwChange* out[kBatch];
  const double* parts;
  int64_t stride;
  int first[kBatch + 1];
};

__global__ void fold_change_kernel(const __grid_constant__ ChangeFold fold) {
  __shared__ double shared[kWarp];
  const int i = static_cast<int>(blockIdx.x);
  AdamwChange mine = no_change();
  for (int p = fold.first[i] + static_cast<int>(threadIdx.x); p < fold.first[i + 1]; p += static_cast<int>(kBlock)) {
    const double* at = fold.parts + p;
    mine = merged(mine, {at[fold.stride], at[2 * fold.stride], at[3 * fold.stride], at[4 * fold.stride], at[5 * fold.stride]});
  }
  const AdamwChange total = block_change(mine, shared);
  if (threadIdx.x == 0) *fold.out[i] = total;
}

template <class W, class M, class G, bool Measured, bool Fp8>
void run_adamw(const AdamwArgs& a, bool vectors, bool noisy_weights, bool noisy_moments, cudaStream_t stream) {
  constexpr bool kHalf = sizeof(W) == 2 && sizeof(M) == 2 && sizeof(G) == 2;
  constexpr int N = kHalf ? 8 : 4;
  const auto run = [&](auto weights, auto moments) {
    const auto kernel = vectors ? adamw_kernel<W, M, G, N, true, weights(), moments(), Measured, Fp8>
                                : adamw_kernel<W, M, G, N, false, weights(), moments(), Measured, Fp8>;
    launch(kernel, grid_of(a.first[a.count], 1), kBlock, stream, a);
  };
  // Noise is for what is stored in bf16.
  constexpr std::bool_constant<sizeof(W) == 2> narrow_weights;
  constexpr std::bool_constant<sizeof(M) == 2> narrow_moments;
  const bool w = noisy_weights && narrow_weights, m = noisy_moments && narrow_moments;
  if (w && m)
    run(narrow_weights, narrow_moments);
  else if (w)
    run(narrow_weights, std::false_type{});
  else if (m)
    run(std::false_type{}, narrow_moments);
  else
    run(std::false_type{}, std::false_type{});
}

bool vectors_fit(const AdamwTensors& t) { return aligned({t.weight.data, t.master.data, t.m.data, t.v.data, t.grad.data}); }

Item item_of(const AdamwTensors& t, const AdamwScalars& s) {
  const auto key = philox_key({.seed = s.seed, .stream = s.stream});
  const bool fp8 = is_fp8(t.weight.dtype);
  return {.weight = t.updated().data,
          .master = t.master.defined() && !fp8 ? t.master.as<float>() : nullptr,
          .m = t.m.data,
          .v = t.v.data,
          .grad = t.grad.data,
          .n = t.weight.numel(),
          .map = s.map,
          .weight_decay = s.weight_decay,
          .key0 = key[0],
          .key1 = key[1],
          .codes = fp8 ? t.weight.as<uint8_t>() : nullptr,
          .code_scale = fp8 ? t.fp8_scale.as<float>() : nullptr,
          .seen = fp8 ? t.fp8_seen.as<double>() : nullptr};
}

void run_batch(std::span<const AdamwItem> items, double* parts, cudaStream_t stream) {
  const AdamwTensors& t = items[0].tensors;
  const AdamwScalars& s = items[0].scalars;
  AdamwArgs args{.item = {},
                 .first = {},
                 .count = static_cast<int>(items.size()),
                 .scale = t.scale.as<float>(),
                 .step = t.step.as<const AdamwStep>(),
                 .parts = parts,
                 .beta1 = s.beta1,
                 .beta2 = s.beta2,
                 .eps = s.eps};
  Fold fold{.out = {}, .parts = parts, .first = {}, .count = args.count};
  for (size_t i = 0; i < items.size(); ++i) {
    args.item[i] = item_of(items[i].tensors, items[i].scalars);
    fold.out[i] = items[i].tensors.weight_sq.as<double>();
    args.first[i + 1] = fold.first[i + 1] = args.first[i] + static_cast<int>(gpu_update_parts(args.item[i].n));
  }
  const bool weights = s.round_weights == Rounding::stochastic, moments = s.round_moments == Rounding::stochastic;
  const bool measured = t.change.defined(), fp8 = is_fp8(t.weight.dtype);
  with_type(t.updated().dtype, [&](auto w) {
    with_type(t.m.dtype, [&](auto m) {
      with_type(t.grad.dtype, [&](auto g) {
        using W = decltype(w);
        using M = decltype(m);
        using G = decltype(g);
        const auto plain = measured ? run_adamw<W, M, G, true, false> : run_adamw<W, M, G, false, false>;
        const auto with_codes = measured ? run_adamw<W, M, G, true, true> : run_adamw<W, M, G, false, true>;
        (fp8 ? with_codes : plain)(args, vectors_fit(t), weights, moments, stream);
      });
    });
  });
  fold_parts(fold, stream);
  if (!measured) return;
  ChangeFold changes{.out = {}, .parts = parts, .stride = args.first[args.count], .first = {}};
  for (size_t i = 0; i < items.size(); ++i) changes.out[i] = items[i].tensors.change.as<AdamwChange>();
  std::copy_n(fold.first, args.count + 1, changes.first);
  launch(fold_change_kernel, grid_of(args.count, 1), kBlock, stream, changes);
}

}  // namespace

// As many neighbours as one launch takes and as are of one alignment; an update does not depend on who is in it.
void CudaOps::do_adamw(std::span<const AdamwItem> items, Tensor scratch) {
  for (size_t begin = 0; begin < items.size();) {
    size_t end = begin + 1;
    while (end < items.size() && end - begin < kBatch && vectors_fit(items[end].tensors) == vectors_fit(items[begin].tensors)) ++end;
    run_batch(items.subspan(begin, end - begin), scratch.as<double>(), stream());
    begin = end;
  }
}

}  // namespace hlat
