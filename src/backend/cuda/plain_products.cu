// Plain matrix products and attention: one thread per result, sums in f32. Right, deterministic and slow; they hold the place of
// the library and of the fast kernels.
#include "backend/cuda/attention.h"
#include "backend/cuda/device.cuh"
#include "backend/cuda/matmul.h"

namespace hlat {

namespace {

struct Product {
  int64_t m, n, k, lda, ldb, ldc;
  bool trans_a, trans_b, accumulate;
};

template <class C, class T>
__global__ void matmul_kernel(C* c, const T* a, const T* b, Product p) {
  const int64_t e = int64_t{blockIdx.x} * kBlock + threadIdx.x, i = e / p.n, j = e % p.n;
  if (i >= p.m) return;
  float sum = 0;
  for (int64_t l = 0; l < p.k; ++l)
    sum += widen(p.trans_a ? a[l * p.lda + i] : a[i * p.lda + l]) * widen(p.trans_b ? b[j * p.ldb + l] : b[l * p.ldb + j]);
  C& out = c[i * p.ldc + j];
  out = narrow<C>(p.accumulate ? widen(out) + sum : sum);
}

struct Heads {
  int64_t seq, heads, kv_heads, dim, row, tokens;
  float scale;
  __device__ int64_t k_column(int64_t h) const { return (heads + h / (heads / kv_heads)) * dim; }
  __device__ int64_t v_column(int64_t h) const { return k_column(h) + kv_heads * dim; }
};

template <class T>
__device__ float dot(const T* a, const T* b, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += widen(a[i]) * widen(b[i]);
  return sum;
}

// One thread per token and query head.
template <class T>
__global__ void attention_kernel(T* out, float* lse, const T* qkv, Heads s) {
  const int64_t e = int64_t{blockIdx.x} * kBlock + threadIdx.x, n = e / s.heads, h = e % s.heads;
  if (n >= s.tokens) return;
  const int64_t first = n / s.seq * s.seq;
  const T* q = qkv + n * s.row + h * s.dim;
  float peak = -INFINITY, sum = 0;
  for (int64_t j = first; j <= n; ++j) peak = fmaxf(peak, s.scale * dot(q, qkv + j * s.row + s.k_column(h), s.dim));
  for (int64_t j = first; j <= n; ++j) sum += expf(s.scale * dot(q, qkv + j * s.row + s.k_column(h), s.dim) - peak);
  lse[(n / s.seq * s.heads + h) * s.seq + n % s.seq] = peak + logf(sum);
  for (int64_t i = 0; i < s.dim; ++i) {
    float value = 0;
    for (int64_t j = first; j <= n; ++j)
      value += expf(s.scale * dot(q, qkv + j * s.row + s.k_column(h), s.dim) - peak) / sum * widen(qkv[j * s.row + s.v_column(h) + i]);
    out[n * s.heads * s.dim + h * s.dim + i] = narrow<T>(value);
  }
}

// p and its gradient for query n, key j of head h.
template <class T>
struct Weight {
  float p, dscore;
  __device__ Weight(const T* dout, const T* out, const float* lse, const T* qkv, const Heads& s, int64_t n, int64_t j, int64_t h) {
    const int64_t at = n * s.heads * s.dim + h * s.dim;
    const float score = s.scale * dot(qkv + n * s.row + h * s.dim, qkv + j * s.row + s.k_column(h), s.dim);
    p = expf(score - lse[(n / s.seq * s.heads + h) * s.seq + n % s.seq]);
    dscore = p * (dot(dout + at, qkv + j * s.row + s.v_column(h), s.dim) - dot(dout + at, out + at, s.dim)) * s.scale;
  }
};

// One thread per element of dqkv.
template <class T>
__global__ void attention_bwd_kernel(T* dqkv, const T* dout, const T* out, const float* lse, const T* qkv, Heads s) {
  const int64_t e = int64_t{blockIdx.x} * kBlock + threadIdx.x, n = e / s.row, column = e % s.row, i = column % s.dim;
  if (n >= s.tokens) return;
  const int64_t first = n / s.seq * s.seq, last = first + s.seq, head = column / s.dim, share = s.heads / s.kv_heads;
  float sum = 0;
  if (head < s.heads) {
    for (int64_t j = first; j <= n; ++j)
      sum += Weight<T>(dout, out, lse, qkv, s, n, j, head).dscore * widen(qkv[j * s.row + s.k_column(head) + i]);
  } else {
    const bool values = head >= s.heads + s.kv_heads;
    const int64_t kv = (head - s.heads) % s.kv_heads;
    for (int64_t h = kv * share; h < (kv + 1) * share; ++h)
      for (int64_t t = n; t < last; ++t) {
        const Weight<T> w(dout, out, lse, qkv, s, t, n, h);
        sum += values ? w.p * widen(dout[t * s.heads * s.dim + h * s.dim + i]) : w.dscore * widen(qkv[t * s.row + h * s.dim + i]);
      }
  }
  dqkv[e] = narrow<T>(sum);
}

Heads heads_of(const AttentionShape& s) {
  return {s.seq, s.heads, s.kv_heads, s.head_dim, s.qkv_width(), s.tokens(), 1.0f / sqrtf(static_cast<float>(s.head_dim))};
}

}  // namespace

CudaMatmul::CudaMatmul(cudaStream_t stream, std::string /*cache_dir*/) : stream_(stream) {}
CudaMatmul::~CudaMatmul() = default;
size_t CudaMatmul::scratch(const MatmulShape& /*s*/) const { return 0; }

void CudaMatmul::run(Tensor c, Tensor a, Tensor b, const MatmulShape& s, Tensor /*scratch*/) {
  const Product p{s.m, s.n, s.k, a.stride[0], b.stride[0], c.stride[0], s.trans_a, s.trans_b, s.accumulate};
  with_type(s.c, [&](auto out) {
    with_type(s.a, [&](auto in) {
      using C = decltype(out);
      using T = decltype(in);
      launch(matmul_kernel<C, T>, grid_of(s.m * s.n, kBlock), kBlock, stream_, c.as<C>(), a.as<T>(), b.as<T>(), p);
    });
  });
}

CudaAttention::CudaAttention(cudaStream_t stream) : stream_(stream) {}
CudaAttention::~CudaAttention() = default;
size_t CudaAttention::scratch(const AttentionShape& /*s*/, DType /*dtype*/, bool /*backward*/) const { return 0; }

void CudaAttention::forward(Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor /*scratch*/) {
  with_type(qkv.dtype, [&](auto t) {
    using T = decltype(t);
    launch(attention_kernel<T>, grid_of(s.tokens() * s.heads, kBlock), kBlock, stream_, out.as<T>(), lse.as<float>(), qkv.as<T>(),
           heads_of(s));
  });
}

void CudaAttention::backward(Tensor dqkv, Tensor dout, Tensor out, Tensor lse, Tensor qkv, const AttentionShape& s, Tensor /*scratch*/) {
  with_type(qkv.dtype, [&](auto t) {
    using T = decltype(t);
    launch(attention_bwd_kernel<T>, grid_of(qkv.numel(), kBlock), kBlock, stream_, dqkv.as<T>(), dout.as<T>(), out.as<T>(), lse.as<float>(),
           qkv.as<T>(), heads_of(s));
  });
}

}  // namespace hlat
