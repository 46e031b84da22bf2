// RMSNorm, one block per row (rows that fit into one warp: norm_rows.cuh): y = x r w with r = 1 / sqrt(mean(x^2) + eps). Backward, with g =
// dy w and c = mean(g x) r^2: dx = r (g - x c), dw = sum over rows of dy x r. A thread keeps its first kKeep pieces of a row in registers
// between the two passes and reads what is beyond again. dw: each block sums its rows into a row of its own in scratch, then gpu_norm_parts
// rows are added in a fixed order.
#include "backend/cuda/norm_rows.cuh"
#include "ops/gpu_scratch.h"

namespace hlat {

namespace {

constexpr int kKeep = 2;
constexpr unsigned kBwdBlock = 512;  // a thread of the backward has too many registers for larger blocks

// Add: x + delta is rounded to T, stored to sum, and normalized from there. Without Put: rstd and sum alone.
template <class T, int N, bool Add, bool Put>
__global__ void rmsnorm_kernel(T* sum, T* y, float* rstd, const T* x, const T* delta, const T* w, int64_t width, float eps) {
  __shared__ float shared[kWarp];
  const int64_t row = blockIdx.x * width;
  const int step = static_cast<int>(blockDim.x) * N;
  float keep[kKeep][N], squares = 0;
  const auto take = [&](float(&v)[N], int64_t i) {
    load(v, x + row + i);
    if constexpr (Add) {
      float d[N];
      load(d, delta + row + i);
#pragma unroll
      for (int j = 0; j < N; ++j) v[j] = widen(narrow<T>(v[j] + d[j]));
      store(sum + row + i, v);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) squares += v[j] * v[j];
  };
  const int64_t begin = int64_t{threadIdx.x} * N;
#pragma unroll
  for (int k = 0; k < kKeep; ++k)
    if (begin + k * step < width) take(keep[k], begin + k * step);
  for (int64_t i = begin + kKeep * step; i < width; i += step) {
    float v[N];
    take(v, i);
  }
  const float r = 1.0f / sqrtf(block_sum(squares, shared) / static_cast<float>(width) + eps);
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
  if constexpr (Put) {
    const auto put = [&](const float(&v)[N], int64_t i) {
      float out[N];
      load(out, w + i);
#pragma unroll
      for (int j = 0; j < N; ++j) out[j] = v[j] * r * out[j];
      store(y + row + i, out);
    };
#pragma unroll
    for (int k = 0; k < kKeep; ++k)
      if (begin + k * step < width) put(keep[k], begin + k * step);
    for (int64_t i = begin + kKeep * step; i < width; i += step) {
      float v[N];
      load(v, (Add ? sum : x) + row + i);
      put(v, i);
    }
  }
}

// The pieces of dy, x and the old dx of one row that a thread keeps.
template <class T, int N>
struct Pieces {
  Raw<T, N> dy[kKeep], x[kKeep], old[kKeep];
  float rstd;

  __device__ void load(const T* dy_row, const T* x_row, const T* old_row, const float* r, int64_t begin, int step, int64_t width) {
#pragma unroll
    for (int k = 0; k < kKeep; ++k)
      if (begin + k * step < width) {
        dy[k].load(dy_row + begin + k * step);
        x[k].load(x_row + begin + k * step);
        if (old_row != nullptr) old[k].load(old_row + begin + k * step);
      }
    rstd = *r;
  }
};

// Block b takes rows b, b + gridDim.x, ... and leaves their dw in row b of parts. The next row is loaded before the sum over this one.
template <class T, int N>
__global__ void __launch_bounds__(kBwdBlock) rmsnorm_bwd_kernel(T* dx, float* parts, const T* dy, const T* x, const T* w, const float* rstd,
                                                                int64_t rows, int64_t width, bool add_dx) {
  __shared__ float shared[kWarp];
  const int step = static_cast<int>(blockDim.x) * N;
  const int64_t begin = int64_t{threadIdx.x} * N, beyond = begin + kKeep * step;
  float* part = parts + blockIdx.x * width;
  Raw<T, N> weight[kKeep];
  float dw[kKeep][N] = {};
#pragma unroll
  for (int k = 0; k < kKeep; ++k)
    if (begin + k * step < width) weight[k].load(w + begin + k * step);
  for (int64_t i = beyond; i < width; i += step)
    for (int j = 0; j < N; ++j) part[i + j] = 0;

  Pieces<T, N> next;
  const auto fetch = [&](int64_t r) {
    next.load(dy + r * width, x + r * width, add_dx ? dx + r * width : nullptr, rstd + r, begin, step, width);
  };
  if (blockIdx.x < rows) fetch(blockIdx.x);
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const int64_t row = r * width, ahead = r + gridDim.x;
    const Pieces<T, N> mine = next;
    if (ahead < rows) fetch(ahead);
    const float s = mine.rstd;
    float dot = 0, a[N], b[N], g[N];
#pragma unroll
    for (int k = 0; k < kKeep; ++k)
      if (begin + k * step < width) {
        mine.dy[k].floats(a);
        mine.x[k].floats(b);
        weight[k].floats(g);
#pragma unroll
        for (int j = 0; j < N; ++j) {
          dot += a[j] * g[j] * b[j];
          dw[k][j] += a[j] * b[j] * s;
        }
      }
    for (int64_t i = beyond; i < width; i += step) {
      load(a, dy + row + i);
      load(b, x + row + i);
      load(g, w + i);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        dot += a[j] * g[j] * b[j];
        part[i + j] += a[j] * b[j] * s;
      }
    }
    const float c = block_sum(dot, shared) / static_cast<float>(width) * s * s;
    const auto put = [&](int64_t i, const float(&old)[N]) {
#pragma unroll
      for (int j = 0; j < N; ++j) a[j] = (a[j] * g[j] - b[j] * c) * s + old[j];
      store(dx + row + i, a);
    };
#pragma unroll
    for (int k = 0; k < kKeep; ++k)
      if (begin + k * step < width) {
        mine.dy[k].floats(a);
        mine.x[k].floats(b);
        weight[k].floats(g);
        float old[N] = {};
        if (add_dx) mine.old[k].floats(old);
        put(begin + k * step, old);
      }
    for (int64_t i = beyond; i < width; i += step) {
      load(a, dy + row + i);
      load(b, x + row + i);
      load(g, w + i);
      float old[N] = {};
      if (add_dx) load(old, dx + row + i);
      put(i, old);
    }
  }
#pragma unroll
  for (int k = 0; k < kKeep; ++k)
    if (begin + k * step < width) store(part + begin + k * step, dw[k]);
}

// 32 columns per block; warp k adds every 32nd part, then the warps' sums are added in order.
template <class G>
__global__ void rmsnorm_dw_kernel(G* dw, const float* parts, int64_t count, int64_t width, bool accumulate) {
  __shared__ float sums[kWarp][kWarp + 1];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t column = int64_t{blockIdx.x} * kWarp + lane;
  float sum = 0;
  if (column < width)
    for (int64_t p = warp; p < count; p += kWarp) sum += parts[p * width + column];
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= width) return;
  float total = 0;
  for (int k = 0; k < kWarp; ++k) total += sums[k][lane];
  dw[column] = narrow<G>(accumulate ? widen(dw[column]) + total : total);
}

}  // namespace

size_t CudaOps::rmsnorm_bwd_scratch(int64_t rows, int64_t width) const { return gpu_rmsnorm_bwd_scratch(rows, width); }

namespace {

// y undefined: rstd and sum alone, with the same bits; of bf16 only.
template <bool Add, bool Put>
void run_rmsnorm(const Tensor& sum, const Tensor& y, const Tensor& rstd, const Tensor& x, const Tensor& delta, const Tensor& w, double eps,
                 cudaStream_t stream) {
  const int64_t rows = x.dim(0), width = x.dim(1);
  if (rows == 0) return;
  const auto run = [&](auto t) {
    using T = decltype(t);
    const auto to = [](const Tensor& tensor) { return Add ? tensor.as<T>() : nullptr; };  // there only with Add
    const auto small = static_cast<float>(eps);
    with_width<kVector<T>>(width % kVector<T> == 0 && aligned({sum.data, y.data, x.data, delta.data, w.data}), [&](auto n) {
      const bool done = with_pieces<n()>(width, [&](auto p) {
        launch(rmsnorm_rows_kernel<T, n(), p(), Add, Put>, grid_of(rows, kBlockRows), kBlockRows * kWarp, stream, to(sum), y.as<T>(),
               rstd.as<float>(), x.as<T>(), to(delta), w.as<T>(), rows, static_cast<int>(width), small);
      });
      if (!done)
        launch(rmsnorm_kernel<T, n(), Add, Put>, grid_of(rows, 1), row_threads(width / n(), kKeep), stream, to(sum), y.as<T>(),
               rstd.as<float>(), x.as<T>(), to(delta), w.as<T>(), width, small);
    });
  };
  if constexpr (Put)
    with_type(x.dtype, run);
  else
    run(bf16{});
}

}  // namespace

void CudaOps::do_rmsnorm(Tensor y, Tensor rstd, Tensor x, Tensor w, double eps) {
  const auto run = y.defined() ? run_rmsnorm<false, true> : run_rmsnorm<false, false>;
  run({}, y, rstd, x, {}, w, eps, stream());
}

void CudaOps::do_add_rmsnorm(Tensor sum, Tensor y, Tensor rstd, Tensor x, Tensor delta, Tensor w, double eps) {
  const auto run = y.defined() ? run_rmsnorm<true, true> : run_rmsnorm<true, false>;
  run(sum, y, rstd, x, delta, w, eps, stream());
}

void CudaOps::do_rmsnorm_bwd(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor rstd, NormBwdArgs args, Tensor scratch) {
  const int64_t rows = x.dim(0), width = x.dim(1), parts = gpu_norm_parts(rows, width);
  if (width == 0) return;
  with_type(x.dtype, [&](auto t) {
    using T = decltype(t);
    with_width<kVector<T>>(width % kVector<T> == 0 && aligned({dx.data, dy.data, x.data, w.data}), [&](auto n) {
      const bool done = with_pieces<n()>(width, [&](auto p) {
        launch(rmsnorm_bwd_rows_kernel<T, n(), p()>, grid_of(parts, 1), kBlockRows * kWarp, stream(), dx.as<T>(), scratch.as<float>(),
               dy.as<T>(), x.as<T>(), w.as<T>(), rstd.as<float>(), rows, static_cast<int>(width), args.add_dx);
      });
      if (!done)
        launch(rmsnorm_bwd_kernel<T, n()>, grid_of(parts, 1), std::min(kBwdBlock, row_threads(width / n(), kKeep)), stream(), dx.as<T>(),
               scratch.as<float>(), dy.as<T>(), x.as<T>(), w.as<T>(), rstd.as<float>(), rows, width, args.add_dx);
    });
  });
  with_type(dw.dtype, [&](auto g) {
    using G = decltype(g);
    launch(rmsnorm_dw_kernel<G>, grid_of(width, kWarp), kWarp * kWarp, stream(), dw.as<G>(), scratch.as<float>(), parts, width,
           args.accumulate_dw);
  });
}

}  // namespace hlat
