// The plain ops, step by step as their bf16 arithmetic is: a block per row, for comparison and not for speed. Products and sums go through
// __fmul_rn and __fadd_rn: contracted to a fused operation they would skip a rounding.
#include "backend/cuda/noise.cuh"

namespace hlat {

namespace {

constexpr unsigned kRowThreads = 256;

// The nearest bf16, as a float.
__device__ inline float near(float x) { return widen(narrow<bf16>(x)); }
__device__ inline float times(float a, float b) { return near(__fmul_rn(a, b)); }
__device__ inline float plus(float a, float b) { return near(__fadd_rn(a, b)); }
__device__ inline float minus(float a, float b) { return near(__fsub_rn(a, b)); }
__device__ inline float over(float a, float b) { return near(__fdiv_rn(a, b)); }

__device__ inline float row_max(float mine, float* shared) {
  return block_fold(mine, -INFINITY, shared, [](float a, float b) { return fmaxf(a, b); });
}

__global__ void softmax_kernel(bf16* p, float* lse, const bf16* scores, int64_t seq, float scale) {
  __shared__ float shared[kWarp];
  const int64_t t = blockIdx.x, at = t * seq;
  float peak = -INFINITY;
  for (int64_t i = threadIdx.x; i <= t; i += kRowThreads) {
    const float s = times(widen(scores[at + i]), scale);
    p[at + i] = narrow<bf16>(s);
    peak = fmaxf(peak, s);
  }
  peak = row_max(peak, shared);
  float sum = 0;
  for (int64_t i = threadIdx.x; i <= t; i += kRowThreads) {
    const float e = near(expf(minus(widen(p[at + i]), peak)));
    p[at + i] = narrow<bf16>(e);
    sum += e;
  }
  sum = near(block_sum(sum, shared));
  for (int64_t i = threadIdx.x; i < seq; i += kRowThreads) p[at + i] = narrow<bf16>(i <= t ? over(widen(p[at + i]), sum) : 0.0f);
  if (threadIdx.x == 0) lse[t] = peak + logf(sum);
}

__global__ void softmax_bwd_kernel(bf16* dscores, const bf16* dp, const bf16* p, int64_t seq, float scale) {
  __shared__ float shared[kWarp];
  const int64_t t = blockIdx.x, at = t * seq;
  float sum = 0;
  for (int64_t i = threadIdx.x; i <= t; i += kRowThreads) sum += times(widen(p[at + i]), widen(dp[at + i]));
  sum = near(block_sum(sum, shared));
  for (int64_t i = threadIdx.x; i < seq; i += kRowThreads)
    dscores[at + i] = narrow<bf16>(i <= t ? times(times(widen(p[at + i]), minus(widen(dp[at + i]), sum)), scale) : 0.0f);
}

__global__ void narrow_norm_kernel(bf16* y, float* rstd, const bf16* x, const bf16* w, int64_t width, float eps) {
  __shared__ float shared[kWarp];
  const int64_t at = int64_t{blockIdx.x} * width;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < width; i += kRowThreads) sum += times(widen(x[at + i]), widen(x[at + i]));
  sum = near(block_sum(sum, shared));
  const float r = over(1.0f, near(__fsqrt_rn(plus(over(sum, static_cast<float>(width)), eps))));
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
  for (int64_t i = threadIdx.x; i < width; i += kRowThreads) y[at + i] = narrow<bf16>(times(times(widen(x[at + i]), r), widen(w[i])));
}

// dx, a row per block.
__global__ void narrow_norm_dx_kernel(bf16* dx, const bf16* dy, const bf16* x, const bf16* w, const float* rstd, int64_t width, bool add) {
  __shared__ float shared[kWarp];
  const int64_t at = int64_t{blockIdx.x} * width;
  const float r = rstd[blockIdx.x];
  float dot = 0;
  for (int64_t i = threadIdx.x; i < width; i += kRowThreads) dot += times(times(widen(dy[at + i]), widen(w[i])), widen(x[at + i]));
  dot = near(block_sum(dot, shared));
  const float c = times(over(dot, static_cast<float>(width)), times(r, r));
  for (int64_t i = threadIdx.x; i < width; i += kRowThreads) {
    const float g = times(widen(dy[at + i]), widen(w[i]));
    const float d = times(minus(g, times(widen(x[at + i]), c)), r);
    dx[at + i] = narrow<bf16>(add ? __fadd_rn(widen(dx[at + i]), d) : d);
  }
}

// Part blockIdx.y of the rows, a column per thread. It runs before dx is written, which may be dy.
__global__ void narrow_norm_dw_kernel(float* parts, const bf16* dy, const bf16* x, const float* rstd, int64_t rows, int64_t width) {
  const int64_t i = int64_t{blockIdx.x} * kRowThreads + threadIdx.x, count = gridDim.y, part = blockIdx.y;
  if (i >= width) return;
  float sum = 0;
  for (int64_t n = rows * part / count; n < rows * (part + 1) / count; ++n)
    sum += times(times(widen(dy[n * width + i]), widen(x[n * width + i])), rstd[n]);
  parts[part * width + i] = sum;
}

template <class T>
__global__ void narrow_norm_fold_kernel(T* dw, const float* parts, int64_t count, int64_t width, bool accumulate) {
  const int64_t i = int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (i >= width) return;
  float sum = 0;
  for (int64_t part = 0; part < count; ++part) sum += parts[part * width + i];
  dw[i] = narrow<T>(accumulate ? widen(dw[i]) + sum : sum);
}

__global__ void narrow_loss_kernel(float* stats, const bf16* logits, const int32_t* targets, int64_t vocab, int64_t first) {
  __shared__ float shared[kWarp];
  const int64_t at = int64_t{blockIdx.x} * vocab;
  float peak = -INFINITY, sum = 0;
  for (int64_t v = threadIdx.x; v < vocab; v += kRowThreads) peak = fmaxf(peak, widen(logits[at + v]));
  peak = row_max(peak, shared);
  for (int64_t v = threadIdx.x; v < vocab; v += kRowThreads) sum += near(expf(minus(widen(logits[at + v]), peak)));
  sum = near(block_sum(sum, shared));
  if (threadIdx.x != 0) return;
  const int64_t target = targets[blockIdx.x] - first;
  float* s = stats + 3 * int64_t{blockIdx.x};
  s[0] = peak;
  s[1] = sum;
  s[2] = targets[blockIdx.x] >= 0 && target >= 0 && target < vocab ? widen(logits[at + target]) : 0.0f;
}

__global__ void narrow_loss_finish_kernel(double* loss_sum, const float* stats, const int32_t* targets, int64_t rows) {
  __shared__ double shared[kWarp];
  double sum = 0;
  for (int64_t n = threadIdx.x; n < rows; n += kRowThreads) {
    const float* s = stats + 3 * n;
    if (targets[n] >= 0) sum += static_cast<double>(plus(near(logf(near(s[1]))), minus(s[0], s[2])));
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *loss_sum += sum;
}

__global__ void narrow_loss_bwd_kernel(bf16* dlogits, const bf16* logits, const float* stats, const int32_t* targets, int64_t vocab,
                                       int64_t first, float scale) {
  const int64_t at = int64_t{blockIdx.x} * vocab;
  const float peak = stats[3 * int64_t{blockIdx.x}], total = near(stats[3 * int64_t{blockIdx.x} + 1]);
  const int32_t target = targets[blockIdx.x];
  for (int64_t v = threadIdx.x; v < vocab; v += kRowThreads) {
    const float p = over(near(expf(minus(widen(logits[at + v]), peak))), total);
    dlogits[at + v] = narrow<bf16>(target < 0 ? 0.0f : times(minus(p, target == first + v ? 1.0f : 0.0f), scale));
  }
}

// Eight columns of a row per thread: a noise block serves them where they are one aligned group.
__global__ void round_rows_kernel(bf16* dst, const float* src, int64_t rows, int64_t width, int64_t dst_row, int64_t src_row, DeviceKey key,
                                  ElementMap map) {
  constexpr int kGroup = 8;
  const int64_t groups = (width + kGroup - 1) / kGroup, i = int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (i >= rows * groups) return;
  const int64_t n = i / groups, c = i % groups * kGroup, e = n * width + c;
  const int count = width - c < kGroup ? static_cast<int>(width - c) : kGroup;
  float v[kGroup] = {};
  for (int j = 0; j < count; ++j) v[j] = src[n * src_row + c + j];
  const Halves<kGroup> bits = round_stochastic(v, noise_of<kGroup>(key, map, e, group_at<kGroup>(map, e), count));
#pragma unroll
  for (int j = 0; j < kGroup; ++j)
    if (j < count) dst[n * dst_row + c + j] = bits[j];
}

dim3 blocks(int64_t n) { return {static_cast<unsigned>(n)}; }
void need_bf16(const Tensor& t) { HLAT_CHECK(t.dtype == DType::bf16, "the CUDA backend has no {} kernels of plain ops", name_of(t.dtype)); }

}  // namespace

void CudaOps::do_narrow_softmax(Tensor p, Tensor lse, Tensor scores, double scale) {
  need_bf16(scores);
  if (scores.dim(0) == 0) return;
  launch(softmax_kernel, blocks(scores.dim(0)), kRowThreads, stream(), p.as<bf16>(), lse.as<float>(), scores.as<bf16>(), scores.dim(0),
         static_cast<float>(scale));
}

void CudaOps::do_narrow_softmax_bwd(Tensor dscores, Tensor dp, Tensor p, double scale) {
  need_bf16(p);
  if (p.dim(0) == 0) return;
  launch(softmax_bwd_kernel, blocks(p.dim(0)), kRowThreads, stream(), dscores.as<bf16>(), dp.as<bf16>(), p.as<bf16>(), p.dim(0),
         static_cast<float>(scale));
}

void CudaOps::do_narrow_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) {
  need_bf16(x);
  if (x.numel() == 0) return;
  launch(narrow_norm_kernel, blocks(x.dim(0)), kRowThreads, stream(), y.as<bf16>(), rstd.as<float>(), x.as<bf16>(), w.as<bf16>(), x.dim(1),
         static_cast<float>(eps));
}

void CudaOps::do_narrow_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args, Tensor scratch) {
  need_bf16(x);
  const int64_t rows = x.dim(0), width = x.dim(1);
  if (width == 0) return;
  const int64_t parts = scratch.dim(0);
  const dim3 grid(static_cast<unsigned>(ceil_div(width, int64_t{kRowThreads})), static_cast<unsigned>(parts));
  launch(narrow_norm_dw_kernel, grid, kRowThreads, stream(), scratch.as<float>(), dy.as<bf16>(), x.as<bf16>(), rstd.as<float>(), rows,
         width);
  if (rows > 0)
    launch(narrow_norm_dx_kernel, blocks(rows), kRowThreads, stream(), dx.as<bf16>(), dy.as<bf16>(), x.as<bf16>(), w.as<bf16>(),
           rstd.as<float>(), width, args.add_dx);
  with_type(dw.dtype, [&](auto e) {
    using T = decltype(e);
    launch(narrow_norm_fold_kernel<T>, grid_of(width, kRowThreads), kRowThreads, stream(), dw.as<T>(), scratch.as<float>(), parts, width,
           args.accumulate_dw);
  });
}

void CudaOps::do_narrow_cross_entropy_partial(Tensor stats, Tensor logits, Tensor targets, int64_t first) {
  need_bf16(logits);
  if (logits.dim(0) == 0) return;
  launch(narrow_loss_kernel, blocks(logits.dim(0)), kRowThreads, stream(), stats.as<float>(), logits.as<bf16>(), targets.as<int32_t>(),
         logits.dim(1), first);
}

void CudaOps::do_narrow_cross_entropy_finish(Tensor loss_sum, Tensor stats, Tensor targets) {
  launch(narrow_loss_finish_kernel, blocks(1), kRowThreads, stream(), loss_sum.as<double>(), stats.as<float>(), targets.as<int32_t>(),
         stats.dim(0));
}

void CudaOps::do_narrow_cross_entropy_bwd(Tensor dlogits, Tensor logits, Tensor stats, Tensor targets, int64_t first, double scale) {
  need_bf16(logits);
  if (logits.numel() == 0) return;
  launch(narrow_loss_bwd_kernel, blocks(logits.dim(0)), kRowThreads, stream(), dlogits.as<bf16>(), logits.as<bf16>(), stats.as<float>(),
         targets.as<int32_t>(), logits.dim(1), first, to_float(to_bf16(static_cast<float>(scale))));
}

void CudaOps::do_round_rows(Tensor dst, Tensor src, NoiseKey key, const ElementMap& map) {
  if (dst.numel() == 0) return;
  launch(round_rows_kernel, grid_of(dst.dim(0) * ceil_div(dst.dim(1), int64_t{8}), kRowThreads), kRowThreads, stream(), dst.as<bf16>(),
         src.as<float>(), dst.dim(0), dst.dim(1), dst.stride[0], src.stride[0], device_key(key), map);
}

}  // namespace hlat
