// Sums, RoPE, SwiGLU: each element read once and written once, in 16-byte accesses where rows and addresses allow it.
#include "backend/cuda/swiglu.cuh"

namespace hlat {

namespace {

// Whole vectors first; the thread after the last of them does the rest one by one.
template <class T, int N>
__global__ void add_kernel(T* y, const T* a, const T* b, int64_t n) {
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * N;
  if (i + N <= n) {
    float p[N], q[N];
    load(p, a + i);
    load(q, b + i);
#pragma unroll
    for (int j = 0; j < N; ++j) p[j] += q[j];
    store(y + i, p);
  } else {
    for (int64_t j = i; j < n; ++j) y[j] = narrow<T>(widen(a[j]) + widen(b[j]));
  }
}

// Counts: few of them.
__global__ void add_f64_kernel(double* y, const double* a, const double* b, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < n) y[i] = a[i] + b[i];
}

// blockIdx.y walks over rows, blockIdx.x over pieces of a row.
template <class T, int N>
__global__ void swiglu_kernel(T* y, const T* gu, int64_t rows, int64_t width) {
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * N;
  if (i >= width) return;
  for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
    float g[N], u[N];
    load(g, gu + r * 2 * width + i);
    load(u, gu + r * 2 * width + width + i);
    swiglu(u, g);
    store(y + r * width + i, u);
  }
}

template <class T, int N>
__global__ void swiglu_bwd_kernel(T* dgu, const T* dy, const T* gu, int64_t rows, int64_t width) {
  const int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * N;
  if (i >= width) return;
  for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
    const int64_t at = r * 2 * width + i;
    float g[N], u[N], d[N];
    load(g, gu + at);
    load(u, gu + at + width);
    load(d, dy + r * width + i);
    swiglu_bwd(u, d, g);
    store(dgu + at, u);
    store(dgu + at + width, d);
  }
}

// One block per token. y_i = x_i c - x_{i+h} s, y_{i+h} = x_{i+h} c + x_i s, with h = E / 2.
template <class T, int N>
__global__ void rope_kernel(T* qkv, const float* table, int64_t seq, int64_t row, int heads, int head_dim, float sign) {
  const int half = head_dim / 2, pieces = half / N;
  const float* cosine = table + (blockIdx.x % seq) * head_dim;
  T* x = qkv + blockIdx.x * row;
  for (int item = static_cast<int>(threadIdx.x); item < heads * pieces; item += static_cast<int>(blockDim.x)) {
    const int head = item / pieces, i = item % pieces * N;
    T* p = x + int64_t{head} * head_dim + i;
    float a[N], b[N], c[N], s[N];
    load(a, p);
    load(b, p + half);
    load(c, cosine + i);
    load(s, cosine + half + i);
    rotate(a, b, c, s, sign);
    store(p, a);
    store(p + half, b);
  }
}

__global__ void rope_table_kernel(float* table, int64_t rows, int64_t head_dim, RopeFrequencies frequencies) {
  const int64_t half = head_dim / 2, n = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (n >= rows * half) return;
  const int64_t t = n / half, i = n % half;
  const double angle = static_cast<double>(t) * frequencies.at(i, head_dim);
  table[t * head_dim + i] = static_cast<float>(cos(angle));
  table[t * head_dim + half + i] = static_cast<float>(sin(angle));
}

dim3 row_grid(int64_t rows, int64_t width, int n) {
  return {static_cast<unsigned>(ceil_div(width, int64_t{kBlock} * n)), static_cast<unsigned>(std::min<int64_t>(rows, 65535))};
}

}  // namespace

void CudaOps::do_add(Tensor y, Tensor a, Tensor b) {
  if (y.numel() == 0) return;
  if (y.dtype == DType::f64)
    return launch(add_f64_kernel, grid_of(y.numel(), kBlock), kBlock, stream(), y.as<double>(), a.as<double>(), b.as<double>(), y.numel());
  with_type(y.dtype, [&](auto t) {
    using T = decltype(t);
    with_width<kVector<T>>(aligned({y.data, a.data, b.data}), [&](auto n) {
      launch(add_kernel<T, n()>, grid_of(y.numel(), kBlock * n()), kBlock, stream(), y.as<T>(), a.as<T>(), b.as<T>(), y.numel());
    });
  });
}

void CudaOps::do_swiglu(Tensor y, Tensor gu) {
  if (y.numel() == 0) return;
  with_type(y.dtype, [&](auto t) {
    using T = decltype(t);
    with_width<kVector<T>>(y.dim(1) % kVector<T> == 0 && aligned({y.data, gu.data}), [&](auto n) {
      launch(swiglu_kernel<T, n()>, row_grid(y.dim(0), y.dim(1), n()), kBlock, stream(), y.as<T>(), gu.as<T>(), y.dim(0), y.dim(1));
    });
  });
}

void CudaOps::do_swiglu_bwd(Tensor dgu, Tensor dy, Tensor gu) {
  if (dy.numel() == 0) return;
  with_type(dy.dtype, [&](auto t) {
    using T = decltype(t);
    with_width<kVector<T>>(dy.dim(1) % kVector<T> == 0 && aligned({dgu.data, dy.data, gu.data}), [&](auto n) {
      launch(swiglu_bwd_kernel<T, n()>, row_grid(dy.dim(0), dy.dim(1), n()), kBlock, stream(), dgu.as<T>(), dy.as<T>(), gu.as<T>(),
             dy.dim(0), dy.dim(1));
    });
  });
}

void CudaOps::do_rope_table(Tensor table, const RopeFrequencies& frequencies) {
  if (table.numel() == 0) return;
  launch(rope_table_kernel, grid_of(table.numel() / 2, kBlock), kBlock, stream(), table.as<float>(), table.dim(0), table.dim(1),
         frequencies);
}

void CudaOps::do_rope(Tensor qkv, Tensor table, AttentionShape s, int sign) {
  const int64_t heads = s.heads + s.kv_heads, half = s.head_dim / 2;
  with_type(qkv.dtype, [&](auto t) {
    using T = decltype(t);
    with_width<kVector<T>>(half % kVector<T> == 0 && aligned({qkv.data, table.data}), [&](auto n) {
      launch(rope_kernel<T, n()>, dim3(static_cast<unsigned>(s.tokens())), std::min(kBlock, row_threads(heads * half / n(), 1)), stream(),
             qkv.as<T>(), table.as<float>(), s.seq, s.qkv_width(), static_cast<int>(heads), static_cast<int>(s.head_dim),
             static_cast<float>(sign));
    });
  });
}

}  // namespace hlat
