// Tensors to one number: sums of squares, ordered sums, the clipping factor, checksums. Two passes: block b of reduce_parts(n)
// leaves its part in scratch, one block adds the parts. The number of parts follows from n alone.
#include "backend/cuda/reduce.cuh"

namespace hlat {

namespace {

constexpr int kGroup = 8;

// Eight squares are added in f32, these sums in f64.
template <class T, bool Vectors>
__global__ void sum_squares_kernel(double* parts, const T* x, int64_t n) {
  __shared__ double shared[kWarp];
  constexpr int kAhead = 4;  // loads in flight
  const int64_t step = int64_t{gridDim.x} * kBlock * kGroup;
  double mine = 0;
  int64_t e = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * kGroup;
  const auto add = [&](const float(&v)[kGroup]) {
    float squares = 0;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) squares += v[j] * v[j];
    mine += static_cast<double>(squares);
  };
  for (; Vectors && e + (kAhead - 1) * step + kGroup <= n; e += kAhead * step) {
    Raw<T, kGroup> ahead[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) ahead[k].load(x + e + k * step);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      float v[kGroup];
      ahead[k].floats(v);
      add(v);
    }
  }
  for (; e < n; e += step) {
    float v[kGroup] = {};
    if (Vectors && e + kGroup <= n) {
      load(v, x + e);
    } else {
#pragma unroll
      for (int j = 0; j < kGroup; ++j)
        if (e + j < n) v[j] = widen(x[e + j]);
    }
    add(v);
  }
  const double total = block_sum(mine, shared);
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

// Few numbers, and their order is part of the contract: one thread.
__device__ double sum_in_order(const double* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

__global__ void sum_kernel(double* out, const double* x, int64_t n) { *out = sum_in_order(x, n); }

__global__ void clip_scale_kernel(float* scale, const double* sq, int64_t n, double max_norm) {
  const double factor = max_norm > 0 ? max_norm / (sqrt(sum_in_order(sq, n)) + 1e-6) : 1.0;
  *scale = static_cast<float>(factor < 1.0 ? factor : 1.0);
}

__device__ inline uint64_t mixed(uint64_t word, int64_t index) {
  uint64_t z = word + static_cast<uint64_t>(index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
  return z ^ (z >> 32);
}

// Element types have 2 bytes or more, so do addresses and lengths. Vectors: two words of 8 bytes at a time.
template <bool Vectors>
__global__ void checksum_kernel(uint64_t* parts, const uint16_t* x, int64_t halves) {
  __shared__ uint64_t shared[kWarp];
  constexpr int kAhead = 4;  // loads in flight
  const int64_t step = int64_t{gridDim.x} * kBlock * 8;
  uint64_t mine = 0;
  int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * 8;
  for (; Vectors && i + (kAhead - 1) * step + 8 <= halves; i += kAhead * step) {
    uint4 q[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) q[k] = *reinterpret_cast<const uint4*>(x + i + k * step);
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      mine += mixed(uint64_t{q[k].y} << 32 | q[k].x, (i + k * step) / 4) + mixed(uint64_t{q[k].w} << 32 | q[k].z, (i + k * step) / 4 + 1);
  }
  for (; i < halves; i += step) {
    uint64_t word[2] = {};
    if (Vectors && i + 8 <= halves) {
      const uint4 q = *reinterpret_cast<const uint4*>(x + i);
      word[0] = uint64_t{q.y} << 32 | q.x;
      word[1] = uint64_t{q.w} << 32 | q.z;
    } else {
#pragma unroll
      for (int j = 0; j < 8; ++j)
        if (i + j < halves) word[j / 4] |= uint64_t{x[i + j]} << (16 * (j % 4));
    }
    mine += mixed(word[0], i / 4);
    if (i + 4 < halves) mine += mixed(word[1], i / 4 + 1);
  }
  const uint64_t total = block_sum(mine, shared);
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

__global__ void checksum_fold_kernel(int32_t* out, const uint64_t* parts, int64_t count) {
  __shared__ uint64_t shared[kWarp];
  uint64_t mine = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) mine += parts[i];
  const uint64_t total = block_sum(mine, shared);
  if (threadIdx.x != 0) return;
  out[0] = static_cast<int32_t>(total);
  out[1] = static_cast<int32_t>(total >> 32);
}

__global__ void fold_kernel(double* out, const double* parts, int64_t count) {
  __shared__ double shared[kWarp];
  double mine = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) mine += parts[i];
  const double total = block_sum(mine, shared);
  if (threadIdx.x == 0) *out = total;
}

}  // namespace

void fold_parts(double* out, const double* parts, int64_t count, cudaStream_t stream) {
  launch(fold_kernel, dim3(1), row_threads(count, 4), stream, out, parts, count);
}

size_t CudaOps::reduce_scratch(int64_t elements) const { return static_cast<size_t>(reduce_parts(elements)) * sizeof(double); }

void CudaOps::do_sum_squares(Tensor out, Tensor x, Tensor scratch) {
  const int64_t n = x.numel(), parts = reduce_parts(n);
  with_type(x.dtype, [&](auto t) {
    using T = decltype(t);
    const auto kernel = aligned({x.data}) ? sum_squares_kernel<T, true> : sum_squares_kernel<T, false>;
    launch(kernel, grid_of(parts, 1), kBlock, stream(), scratch.as<double>(), x.as<T>(), n);
  });
  fold_parts(out.as<double>(), scratch.as<double>(), parts, stream());
}

void CudaOps::do_sum(Tensor out, Tensor x) { launch(sum_kernel, dim3(1), 1, stream(), out.as<double>(), x.as<double>(), x.numel()); }

void CudaOps::do_clip_scale(Tensor scale, Tensor sq, double max_norm) {
  launch(clip_scale_kernel, dim3(1), 1, stream(), scale.as<float>(), sq.as<double>(), sq.numel(), max_norm);
}

void CudaOps::do_checksum(Tensor out, Tensor x, Tensor scratch) {
  const int64_t parts = reduce_parts(x.numel());
  const auto kernel = aligned({x.data}) ? checksum_kernel<true> : checksum_kernel<false>;
  launch(kernel, grid_of(parts, 1), kBlock, stream(), scratch.as<uint64_t>(), x.as<uint16_t>(), static_cast<int64_t>(x.bytes() / 2));
  launch(checksum_fold_kernel, dim3(1), row_threads(parts, 4), stream(), out.as<int32_t>(), scratch.as<uint64_t>(), parts);
}

}  // namespace hlat
