// Cross-entropy over a shard of the vocabulary: one block per row, every logit read once.
// partial: each thread carries a running maximum and the sum of exponentials relative to it; pairs are merged in a fixed order.
// bwd: softmax minus one-hot, element by element, in place where asked.
// whole: where the whole vocabulary is here, the row stays in registers between the sum of exponentials and the gradient, so every
// logit is read once and written once. Rows too long for that take the other ops.
#include "backend/cuda/device.cuh"

namespace hlat {

namespace {

// m: maximum, s: sum of exp(x - m). Nothing yet: m = -inf, s = 0.
struct Softmax {
  float m, s;
};

// exp(-inf - -inf) would be NaN: an empty side keeps the sum at 0.
__device__ float rescale(const Softmax& a, float m) { return a.s == 0 ? 0 : a.s * exp_nonpositive(a.m - m); }

__device__ Softmax merge(const Softmax& a, const Softmax& b) {
  const float m = fmaxf(a.m, b.m);
  return {m, rescale(a, m) + rescale(b, m)};
}

template <int N>
__device__ void take(Softmax& a, const float (&v)[N]) {
  float m = v[0];
#pragma unroll
  for (int j = 1; j < N; ++j) m = fmaxf(m, v[j]);
  m = fmaxf(m, a.m);
  if (m == -INFINITY) return;  // nothing but -inf so far
  if (m > a.m) {
    a.s = rescale(a, m);
    a.m = m;
  }
#pragma unroll
  for (int j = 0; j < N; ++j) a.s += exp_nonpositive(v[j] - m);
}

__device__ Softmax merge_block(Softmax mine, Softmax* shared) {
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const auto fold = [&] {
#pragma unroll
    for (int d = kWarp / 2; d > 0; d /= 2)
      mine = merge(mine, {__shfl_xor_sync(0xffffffffu, mine.m, d), __shfl_xor_sync(0xffffffffu, mine.s, d)});
  };
  fold();
  if (lane == 0) shared[warp] = mine;
  __syncthreads();
  mine = lane < warps ? shared[lane] : Softmax{-INFINITY, 0};
  fold();
  return mine;
}

constexpr unsigned kRowBlock = 512;

template <class T, int N>
__global__ void ce_partial_kernel(float* stats, const T* logits, const int32_t* targets, int64_t width, int64_t first) {
  __shared__ Softmax shared[kWarp];
  constexpr int kAhead = N > 1 ? 4 : 1;  // loads in flight
  const T* x = logits + blockIdx.x * width;
  const int64_t step = int64_t{blockDim.x} * N;
  Softmax mine{-INFINITY, 0};
  int64_t i = int64_t{threadIdx.x} * N;
  for (; i + (kAhead - 1) * step < width; i += kAhead * step) {
    float v[kAhead][N];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) load(v[k], x + i + k * step);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) take(mine, v[k]);
  }
  for (; i < width; i += step) {
    float v[N];
    load(v, x + i);
    take(mine, v);
  }
  mine = merge_block(mine, shared);
  if (threadIdx.x != 0) return;
  const int32_t target = targets[blockIdx.x];
  const int64_t t = target - first;
  float* out = stats + int64_t{3} * blockIdx.x;
  out[0] = mine.m;
  out[1] = mine.s;
  out[2] = target >= 0 && t >= 0 && t < width ? widen(x[t]) : 0.0f;
}

// The rescaled sum is f64: few shards, and the loss is a logarithm of it.
__global__ void ce_merge_kernel(float* stats, const float* parts, int64_t rows, int64_t shards) {
  const int64_t n = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (n >= rows) return;
  const float* part = parts + 3 * n;
  float peak = part[0], target = part[2];
  for (int64_t p = 1; p < shards; ++p) {
    peak = fmaxf(peak, part[3 * rows * p]);
    target += part[3 * rows * p + 2];
  }
  double total = 0;
  for (int64_t p = 0; p < shards; ++p) {
    const float* s = part + 3 * rows * p;
    total += static_cast<double>(s[1]) * exp(static_cast<double>(s[0]) - static_cast<double>(peak));
  }
  stats[3 * n] = peak;
  stats[3 * n + 1] = static_cast<float>(total);
  stats[3 * n + 2] = target;
}

__global__ void ce_finish_kernel(double* loss_sum, const float* stats, const int32_t* targets, int64_t rows) {
  __shared__ double shared[kWarp];
  double mine = 0;
  for (int64_t n = threadIdx.x; n < rows; n += blockDim.x) {
    if (targets[n] < 0) continue;
    const float* s = stats + 3 * n;
    mine += log(static_cast<double>(s[1])) + static_cast<double>(s[0]) - static_cast<double>(s[2]);
  }
  const double total = block_sum(mine, shared);
  if (threadIdx.x == 0) *loss_sum += total;
}

// Where column p of P begins in a row: the first position t with t * P / seq == p.
__device__ inline int64_t part_begin(int64_t p, int64_t parts, int64_t seq) { return (p * seq + parts - 1) / parts; }

// A block per column, which takes the rows one after the other: the sums do not depend on who comes first.
__global__ void add_losses_kernel(double* table, const float* stats, const int32_t* targets, const int32_t* groups, int64_t tokens,
                                  int64_t first, int64_t seq) {
  __shared__ double shared[kWarp];
  const int64_t parts = gridDim.x, part = blockIdx.x, begin = part_begin(part, parts, seq), end = part_begin(part + 1, parts, seq);
  for (int64_t row = first / seq; row * seq < first + tokens; ++row) {
    double mine = 0;
    for (int64_t t = begin + threadIdx.x; t < end; t += blockDim.x) {
      const int64_t n = row * seq + t - first;
      if (n < 0 || n >= tokens || targets[n] < 0) continue;
      const float* s = stats + 3 * n;
      mine += log(static_cast<double>(s[1])) + static_cast<double>(s[0]) - static_cast<double>(s[2]);
    }
    const double total = block_sum(mine, shared);
    if (threadIdx.x == 0) table[groups[row] * parts + part] += total;
  }
}

template <class T, int N>
__global__ void ce_bwd_kernel(T* dlogits, const T* logits, const float* stats, const int32_t* targets, int64_t rows, int64_t width,
                              int64_t first, float scale) {
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * N;
  if (i >= width) return;
  for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
    const int32_t target = targets[r];
    const float peak = stats[3 * r], factor = scale / stats[3 * r + 1];
    const int64_t hot = target - first - i;  // the target's place in this piece, if it is in it
    float v[N];
    load(v, logits + r * width + i);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      // The one-hot is taken off in f32, before rounding: softmax near 1 would otherwise lose the difference.
      v[j] = target < 0 ? 0.0f : exp_nonpositive(v[j] - peak) * factor - (hot == j ? scale : 0.0f);
    }
    store(dlogits + r * width + i, v);
  }
}

constexpr int kPieces = 8;  // 16-byte pieces of a row that a thread holds
constexpr unsigned kMostThreads = 1024;

template <class T, int N>
__global__ void __launch_bounds__(kMostThreads)
    ce_whole_kernel(T* logits, float* stats, const int32_t* targets, int64_t width, float scale) {
  __shared__ Softmax shared[kWarp];
  T* x = logits + blockIdx.x * width;
  const int step = static_cast<int>(blockDim.x) * N, begin = static_cast<int>(threadIdx.x) * N;
  Raw<T, N> keep[kPieces];
#pragma unroll
  for (int k = 0; k < kPieces; ++k)
    if (begin + k * step < width) keep[k].load(x + begin + k * step);
  const int32_t target = targets[blockIdx.x];
  const float target_logit = threadIdx.x == 0 && target >= 0 && target < width ? widen(x[target]) : 0.0f;  // before it is overwritten
  Softmax mine{-INFINITY, 0};
  float v[N];
#pragma unroll
  for (int k = 0; k < kPieces; ++k)
    if (begin + k * step < width) {
      keep[k].floats(v);
      take(mine, v);
    }
  mine = merge_block(mine, shared);
  const float factor = scale / mine.s;
#pragma unroll
  for (int k = 0; k < kPieces; ++k)
    if (begin + k * step < width) {
      keep[k].floats(v);
      const int hot = target - begin - k * step;  // the target's place in this piece, if it is in it
#pragma unroll
      for (int j = 0; j < N; ++j)  // the one-hot is taken off in f32, before rounding
        v[j] = target < 0 ? 0.0f : exp_nonpositive(v[j] - mine.m) * factor - (hot == j ? scale : 0.0f);
      store(x + begin + k * step, v);
    }
  if (threadIdx.x != 0) return;
  float* out = stats + int64_t{3} * blockIdx.x;
  out[0] = mine.m;
  out[1] = mine.s;
  out[2] = target_logit;
}

}  // namespace

void CudaOps::do_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) {
  if (logits.dim(0) == 0) return;
  const int64_t width = logits.dim(1);
  with_type(logits.dtype, [&](auto t) {
    using T = decltype(t);
    with_width<kVector<T>>(width % kVector<T> == 0 && aligned({logits.data}), [&](auto n) {
      launch(ce_partial_kernel<T, n()>, grid_of(logits.dim(0), 1), std::min(kRowBlock, row_threads(width / n(), 1)), stream(),
             stats.as<float>(), logits.as<T>(), targets.as<int32_t>(), width, first);
    });
  });
}

void CudaOps::do_cross_entropy_merge(Tensor stats, Tensor parts) {
  if (stats.dim(0) == 0) return;
  launch(ce_merge_kernel, grid_of(stats.dim(0), kBlock), kBlock, stream(), stats.as<float>(), parts.as<float>(), stats.dim(0),
         parts.dim(0));
}

void CudaOps::do_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) {
  launch(ce_finish_kernel, dim3(1), row_threads(stats.dim(0), 1), stream(), loss_sum.as<double>(), stats.as<float>(), targets.as<int32_t>(),
         stats.dim(0));
}

void CudaOps::do_add_losses(Tensor table, Tensor stats, Tensor targets, Tensor groups, int64_t first, int64_t seq) {
  const int64_t parts = table.dim(1);
  launch(add_losses_kernel, grid_of(parts, 1), std::min(kRowBlock, row_threads(ceil_div(seq, parts), 1)), stream(), table.as<double>(),
         stats.as<float>(), targets.as<int32_t>(), groups.as<int32_t>(), stats.dim(0), first, seq);
}

void CudaOps::do_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) {
  if (logits.numel() == 0) return;
  const int64_t rows = logits.dim(0), width = logits.dim(1);
  with_type(logits.dtype, [&](auto t) {
    using T = decltype(t);
    with_width<kVector<T>>(width % kVector<T> == 0 && aligned({dlogits.data, logits.data}), [&](auto n) {
      const dim3 grid(static_cast<unsigned>(ceil_div(width, int64_t{kBlock} * n())), static_cast<unsigned>(std::min<int64_t>(rows, 65535)));
      launch(ce_bwd_kernel<T, n()>, grid, kBlock, stream(), dlogits.as<T>(), logits.as<T>(), stats.as<float>(), targets.as<int32_t>(), rows,
             width, first, static_cast<float>(scale));
    });
  });
}

void CudaOps::do_cross_entropy_whole(Tensor loss_sum, Tensor logits, Tensor stats, Tensor targets, double scale) {
  const int64_t rows = logits.dim(0), width = logits.dim(1);
  if (rows == 0) return;
  const int64_t vector = static_cast<int64_t>(16 / size_of(logits.dtype));
  if (width % vector != 0 || width > vector * kPieces * kMostThreads || !aligned({logits.data}))
    return Ops::do_cross_entropy_whole(loss_sum, logits, stats, targets, scale);
  with_type(logits.dtype, [&](auto t) {
    using T = decltype(t);
    launch(ce_whole_kernel<T, kVector<T>>, grid_of(rows, 1), row_threads(width / vector, kPieces), stream(), logits.as<T>(),
           stats.as<float>(), targets.as<int32_t>(), width, static_cast<float>(scale));
  });
  do_cross_entropy_finish(loss_sum, stats, targets);
}

}  // namespace hlat
