#include "backend/cuda/gpu_reference.h"

#include <cuda_bf16.h>

#include <cstdio>
#include <cstdlib>

namespace hlat::gpu_reference {

namespace {

constexpr int kThreads = 128;

__device__ __host__ inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

__device__ inline double value(const void* data, bool bf16, int64_t i) {
  return bf16 ? static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]))
              : static_cast<double>(static_cast<const float*>(data)[i]);
}
__device__ inline double value(const Matrix& m, int64_t i, int64_t j) {
  return value(m.data, m.bf16, m.transposed ? j * m.ld + i : i * m.ld + j);
}

// The sum over the block; every thread gets it.
__device__ double block_sum(double x) {
  __shared__ double part[kThreads];
  part[threadIdx.x] = x;
  __syncthreads();
  for (int d = kThreads / 2; d > 0; d /= 2) {
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
    __syncthreads();
  }
  x = part[0];
  __syncthreads();
  return x;
}

__global__ void matmul_kernel(Sample* out, int64_t count, Matrix c, Matrix before, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k,
                              bool accumulate) {
  for (int64_t s = blockIdx.x; s < count; s += gridDim.x) {
    const int64_t at = count == m * n ? s : static_cast<int64_t>(mix(static_cast<uint64_t>(s)) % static_cast<uint64_t>(m * n));
    const int64_t i = at / n, j = at % n;
    double sum = 0, magnitude = 0;
    for (int64_t e = threadIdx.x; e < k; e += kThreads) {
      const double term = value(a, i, e) * value(b, e, j);
      sum += term;
      magnitude += fabs(term);
    }
    sum = block_sum(sum);
    magnitude = block_sum(magnitude);
    const double old = accumulate ? value(before, i, j) : 0;
    if (threadIdx.x == 0) out[s] = {sum + old, magnitude + fabs(old), value(c, i, j), fabs(sum)};
  }
}

struct Index {
  int64_t b, h, t;
};
__device__ Index draw(int64_t s, const Attention& x, int64_t heads) {
  const uint64_t r = mix(static_cast<uint64_t>(s) + 77);
  Index i{static_cast<int64_t>(r % x.batch), static_cast<int64_t>(r / 997 % heads), static_cast<int64_t>((r >> 24) % x.seq)};
  if (s == 0) i.t = 0;
  if (s == 1) i.t = x.seq - 1;
  return i;
}

struct View {
  const Attention& x;
  __device__ int64_t width() const { return (x.heads + 2 * x.kv_heads) * x.head_dim; }
  __device__ int64_t q(int64_t b, int64_t h, int64_t t) const { return (b * x.seq + t) * width() + h * x.head_dim; }
  __device__ int64_t k(int64_t b, int64_t kv, int64_t t) const { return q(b, x.heads + kv, t); }
  __device__ int64_t v(int64_t b, int64_t kv, int64_t t) const { return q(b, x.heads + x.kv_heads + kv, t); }
  __device__ int64_t o(int64_t b, int64_t h, int64_t t) const { return ((b * x.seq + t) * x.heads + h) * x.head_dim; }
  __device__ int64_t stat(int64_t b, int64_t h, int64_t t) const { return (b * x.heads + h) * x.seq + t; }
  __device__ double dot(const void* p, int64_t i, const void* q_, int64_t j) const {
    double sum = 0;
    for (int64_t e = 0; e < x.head_dim; ++e) sum += value(p, x.bf16, i + e) * value(q_, x.bf16, j + e);
    return sum;
  }
  __device__ double scale() const { return 1 / sqrt(static_cast<double>(x.head_dim)); }
};

__global__ void forward_kernel(Sample* out, Sample* lse, Attention x, double* work) {
  const View at{x};
  const Index i = draw(blockIdx.x, x, x.heads);
  const int64_t kv = i.h / (x.heads / x.kv_heads);
  double* w = work + blockIdx.x * x.seq;
  double sum = 0;
  for (int64_t j = threadIdx.x; j <= i.t; j += kThreads) {
    w[j] = exp(at.scale() * at.dot(x.qkv, at.q(i.b, i.h, i.t), x.qkv, at.k(i.b, kv, j)));  // scores are small in these tests
    sum += w[j];
  }
  sum = block_sum(sum);
  for (int64_t e = threadIdx.x; e < x.head_dim; e += kThreads) {
    double o = 0;
    for (int64_t j = 0; j <= i.t; ++j) o += w[j] / sum * value(x.qkv, x.bf16, at.v(i.b, kv, j) + e);
    out[blockIdx.x * x.head_dim + e] = {o, fabs(o), value(x.out, x.bf16, at.o(i.b, i.h, i.t) + e)};
  }
  if (threadIdx.x == 0) lse[blockIdx.x] = {log(sum), 1, static_cast<double>(x.lse[at.stat(i.b, i.h, i.t)])};
}

__global__ void dq_kernel(Sample* dq, Attention x, double* work) {
  const View at{x};
  const Index i = draw(blockIdx.x, x, x.heads);
  const int64_t kv = i.h / (x.heads / x.kv_heads), o = at.o(i.b, i.h, i.t);
  double* w = work + blockIdx.x * x.seq;
  const double delta = at.dot(x.dout, o, x.out, o), lse = x.lse[at.stat(i.b, i.h, i.t)];
  for (int64_t j = threadIdx.x; j <= i.t; j += kThreads) {
    const double p = exp(at.scale() * at.dot(x.qkv, at.q(i.b, i.h, i.t), x.qkv, at.k(i.b, kv, j)) - lse);
    w[j] = p * (at.dot(x.dout, o, x.qkv, at.v(i.b, kv, j)) - delta) * at.scale();
  }
  __syncthreads();
  for (int64_t e = threadIdx.x; e < x.head_dim; e += kThreads) {
    double sum = 0;
    for (int64_t j = 0; j <= i.t; ++j) sum += w[j] * value(x.qkv, x.bf16, at.k(i.b, kv, j) + e);
    dq[blockIdx.x * x.head_dim + e] = {sum, fabs(sum), value(x.dqkv, x.bf16, at.q(i.b, i.h, i.t) + e)};
  }
}

__global__ void dkv_kernel(Sample* dk, Sample* dv, Attention x, double* work) {
  const View at{x};
  const Index i = draw(blockIdx.x, x, x.kv_heads);
  const int64_t group = x.heads / x.kv_heads, pairs = group * (x.seq - i.t);
  double *p = work + blockIdx.x * 2 * group * x.seq, *ds = p + group * x.seq;
  for (int64_t r = threadIdx.x; r < pairs; r += kThreads) {
    const int64_t h = i.h * group + r / (x.seq - i.t), t = i.t + r % (x.seq - i.t), o = at.o(i.b, h, t);
    p[r] = exp(at.scale() * at.dot(x.qkv, at.q(i.b, h, t), x.qkv, at.k(i.b, i.h, i.t)) - x.lse[at.stat(i.b, h, t)]);
    ds[r] = p[r] * (at.dot(x.dout, o, x.qkv, at.v(i.b, i.h, i.t)) - at.dot(x.dout, o, x.out, o)) * at.scale();
  }
  __syncthreads();
  for (int64_t e = threadIdx.x; e < x.head_dim; e += kThreads) {
    double sum_k = 0, sum_v = 0;
    for (int64_t r = 0; r < pairs; ++r) {
      const int64_t h = i.h * group + r / (x.seq - i.t), t = i.t + r % (x.seq - i.t);
      sum_k += ds[r] * value(x.qkv, x.bf16, at.q(i.b, h, t) + e);
      sum_v += p[r] * value(x.dout, x.bf16, at.o(i.b, h, t) + e);
    }
    dk[blockIdx.x * x.head_dim + e] = {sum_k, fabs(sum_k), value(x.dqkv, x.bf16, at.k(i.b, i.h, i.t) + e)};
    dv[blockIdx.x * x.head_dim + e] = {sum_v, fabs(sum_v), value(x.dqkv, x.bf16, at.v(i.b, i.h, i.t) + e)};
  }
}

__global__ void fill_kernel(void* data, int64_t count, bool bf16, float std, uint64_t seed) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    const uint64_t r = mix(seed * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(i));
    const float u = (static_cast<float>(r >> 40) + 0.5f) * 0x1p-24f, a = static_cast<float>(r & 0xffffff) * 0x1p-24f;
    const float x = std * sqrtf(-2 * logf(u)) * cospif(2 * a);
    if (bf16)
      static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(x);
    else
      static_cast<float*>(data)[i] = x;
  }
}

__global__ void differ_kernel(unsigned long long* sum, const uint8_t* a, const uint8_t* b, int64_t count) {
  unsigned long long mine = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) mine += a[i] != b[i];
  if (mine != 0) atomicAdd(sum, mine);
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

void finish() {
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
}

unsigned blocks(int64_t count) { return static_cast<unsigned>(count); }

}  // namespace

void matmul(Sample* out, int64_t count, Matrix c, Matrix before, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k, bool accumulate) {
  matmul_kernel<<<blocks(count < 65536 ? count : 65536), kThreads>>>(out, count, c, before, a, b, m, n, k, accumulate);
  finish();
}
void attention_forward(Sample* out, Sample* lse, int64_t count, Attention x, double* work) {
  forward_kernel<<<blocks(count), kThreads>>>(out, lse, x, work);
  finish();
}
void attention_dq(Sample* dq, int64_t count, Attention x, double* work) {
  dq_kernel<<<blocks(count), kThreads>>>(dq, x, work);
  finish();
}
void attention_dkv(Sample* dk, Sample* dv, int64_t count, Attention x, double* work) {
  dkv_kernel<<<blocks(count), kThreads>>>(dk, dv, x, work);
  finish();
}
void fill(void* data, int64_t count, bool bf16, float std, uint64_t seed) {
  fill_kernel<<<2048, 256>>>(data, count, bf16, std, seed);
  finish();
}
int64_t differing_bytes(const void* a, const void* b, int64_t count) {
  unsigned long long *sum = nullptr, host = 0;
  check(cudaMalloc(&sum, sizeof(host)));
  check(cudaMemset(sum, 0, sizeof(host)));
  differ_kernel<<<2048, 256>>>(sum, static_cast<const uint8_t*>(a), static_cast<const uint8_t*>(b), count);
  finish();
  check(cudaMemcpy(&host, sum, sizeof(host), cudaMemcpyDeviceToHost));
  check(cudaFree(sum));
  return static_cast<int64_t>(host);
}

}  // namespace hlat::gpu_reference
