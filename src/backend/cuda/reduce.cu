// Tensors to one number: sums of squares, ordered sums, the clipping factor, checksums, largest values. Two passes: block b of
// reduce_parts(n) leaves its part in scratch, one block adds the parts. The number of parts follows from n alone, so a sum does not depend
// on what else is in the same launch.
#include "backend/cuda/reduce.cuh"
#include "ops/gpu_scratch.h"

namespace hlat {

namespace {

constexpr int kGroup = 8;

// What a group of eight adds to the sum. Squares are added in f32, plain numbers in f64.
template <bool Squares>
__device__ inline double term(const float (&v)[kGroup]) {
  float squares = 0;
  double sum = 0;
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    if constexpr (Squares)
      squares += v[j] * v[j];
    else
      sum += static_cast<double>(v[j]);
  }
  return Squares ? static_cast<double>(squares) : sum;
}

struct SumArgs {
  const void* x[kBatch];
  int64_t n[kBatch];
  double* parts;
  int first[kBatch + 1];
  int count;
};

template <class T, bool Squares, bool Vectors>
__global__ void sum_parts_kernel(const __grid_constant__ SumArgs a) {
  __shared__ double shared[kWarp];
  constexpr int kAhead = 4;  // loads in flight
  const Share share = share_of(a.first, a.count);
  const T* x = static_cast<const T*>(a.x[share.item]);
  const int64_t n = a.n[share.item], step = int64_t{share.blocks} * kBlock * kGroup;
  double mine = 0;
  int64_t e = (int64_t{share.block} * kBlock + threadIdx.x) * kGroup;
  for (; Vectors && e + (kAhead - 1) * step + kGroup <= n; e += kAhead * step) {
    Raw<T, kGroup> ahead[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) ahead[k].load(x + e + k * step);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      float v[kGroup];
      ahead[k].floats(v);
      mine += term<Squares>(v);
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
    mine += term<Squares>(v);
  }
  const double total = block_sum(mine, shared);
  if (threadIdx.x == 0) a.parts[blockIdx.x] = total;
}

// Few numbers, and their order is part of the contract: one thread.
__device__ double sum_in_order(const double* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

__global__ void sum_kernel(double* out, const double* x, int64_t n) { *out = sum_in_order(x, n); }

__global__ void clip_scale_kernel(float* scale, const double* sq, int64_t n, double max_norm) {
  const double total = sum_in_order(sq, n), factor = max_norm > 0 ? max_norm / (sqrt(total) + 1e-6) : 1.0;
  *scale = !isfinite(total) ? nanf("") : static_cast<float>(factor < 1.0 ? factor : 1.0);
}

__device__ inline uint64_t mixed(uint64_t word, int64_t index) {
  uint64_t z = word + static_cast<uint64_t>(index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
  return z ^ (z >> 32);
}

// Words of 8 bytes, the last one filled with zeros. Vectors: two words at a time.
template <bool Vectors>
__global__ void checksum_kernel(uint64_t* parts, const uint8_t* x, int64_t bytes) {
  __shared__ uint64_t shared[kWarp];
  constexpr int kAhead = 4;  // loads in flight
  const int64_t step = int64_t{gridDim.x} * kBlock * 16;
  uint64_t mine = 0;
  int64_t i = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * 16;
  for (; Vectors && i + (kAhead - 1) * step + 16 <= bytes; i += kAhead * step) {
    uint4 q[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) q[k] = *reinterpret_cast<const uint4*>(x + i + k * step);
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      mine += mixed(uint64_t{q[k].y} << 32 | q[k].x, (i + k * step) / 8) + mixed(uint64_t{q[k].w} << 32 | q[k].z, (i + k * step) / 8 + 1);
  }
  for (; i < bytes; i += step) {
    uint64_t word[2] = {};
    if (Vectors && i + 16 <= bytes) {
      const uint4 q = *reinterpret_cast<const uint4*>(x + i);
      word[0] = uint64_t{q.y} << 32 | q.x;
      word[1] = uint64_t{q.w} << 32 | q.z;
    } else {
#pragma unroll
      for (int j = 0; j < 16; ++j)
        if (i + j < bytes) word[j / 8] |= uint64_t{x[i + j]} << (8 * (j % 8));
    }
    mine += mixed(word[0], i / 8);
    if (i + 8 < bytes) mine += mixed(word[1], i / 8 + 1);
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

// NaN is above all numbers, and so it stays.
__device__ inline double larger(double a, double b) { return a != a || a > b ? a : b; }

template <class T, bool Vectors>
__global__ void largest_kernel(double* parts, const T* x, int64_t n, bool absolute) {
  __shared__ double shared[kWarp];
  const int64_t step = int64_t{gridDim.x} * kBlock * kGroup;
  float top = -INFINITY;
  bool nan = false;
#pragma unroll 4
  for (int64_t e = (int64_t{blockIdx.x} * kBlock + threadIdx.x) * kGroup; e < n; e += step) {
    float v[kGroup];
    if (Vectors && e + kGroup <= n) {
      load(v, x + e);
    } else {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) v[j] = widen(x[e + j < n ? e + j : e]);  // one of them twice changes nothing
    }
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      nan = nan || v[j] != v[j];
      top = fmaxf(top, absolute ? fabsf(v[j]) : v[j]);
    }
  }
  const double mine = nan ? static_cast<double>(NAN) : static_cast<double>(top);
  const double all = block_fold(mine, -static_cast<double>(INFINITY), shared, [](double a, double b) { return larger(a, b); });
  if (threadIdx.x == 0) parts[blockIdx.x] = all;
}

__global__ void largest_fold_kernel(double* out, const double* parts, int64_t count) {
  __shared__ double shared[kWarp];
  double mine = -static_cast<double>(INFINITY);
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) mine = larger(mine, parts[i]);
  const double all = block_fold(mine, -static_cast<double>(INFINITY), shared, [](double a, double b) { return larger(a, b); });
  if (threadIdx.x == 0) *out = larger(*out, all);
}

__global__ void fold_kernel(const __grid_constant__ Fold fold) {
  __shared__ double shared[kWarp];
  const int i = static_cast<int>(blockIdx.x);
  double mine = 0;
  for (int p = fold.first[i] + static_cast<int>(threadIdx.x); p < fold.first[i + 1]; p += static_cast<int>(kBlock)) mine += fold.parts[p];
  const double total = block_sum(mine, shared);
  if (threadIdx.x == 0) *fold.out[i] = total;
}

}  // namespace

void fold_parts(const Fold& fold, cudaStream_t stream) { launch(fold_kernel, grid_of(fold.count, 1), kBlock, stream, fold); }

size_t CudaOps::reduce_scratch(int64_t elements) const { return gpu_reduce_scratch(elements); }

namespace {

template <bool Squares>
void sum_batch(double* out, std::span<const Tensor> x, double* parts, cudaStream_t stream) {
  SumArgs args{.x = {}, .n = {}, .parts = parts, .first = {}, .count = static_cast<int>(x.size())};
  Fold fold{.out = {}, .parts = parts, .first = {}, .count = args.count};
  bool vectors = true;
  for (size_t i = 0; i < x.size(); ++i) {
    args.x[i] = x[i].data;
    args.n[i] = x[i].numel();
    vectors = vectors && aligned({x[i].data});
    fold.out[i] = out + i;
    args.first[i + 1] = fold.first[i + 1] = args.first[i] + static_cast<int>(reduce_parts(args.n[i]));
  }
  with_type(x[0].dtype, [&](auto t) {
    using T = decltype(t);
    const auto kernel = vectors ? sum_parts_kernel<T, Squares, true> : sum_parts_kernel<T, Squares, false>;
    launch(kernel, grid_of(args.first[args.count], 1), kBlock, stream, args);
  });
  fold_parts(fold, stream);
}

}  // namespace

// As many neighbours as one launch takes and as are of one type and alignment; the sums do not depend on who is in it.
void CudaOps::do_sum_squares(Tensor out, std::span<const Tensor> x, Tensor scratch) {
  const auto like = [](const Tensor& a, const Tensor& b) { return a.dtype == b.dtype && aligned({a.data}) == aligned({b.data}); };
  for (size_t begin = 0; begin < x.size();) {
    size_t end = begin + 1;
    while (end < x.size() && end - begin < kBatch && like(x[begin], x[end])) ++end;
    sum_batch<true>(out.as<double>() + begin, x.subspan(begin, end - begin), scratch.as<double>(), stream());
    begin = end;
  }
}

void CudaOps::do_sum(Tensor out, Tensor x, Tensor scratch) {
  if (x.dtype != DType::f64) return sum_batch<false>(out.as<double>(), {&x, 1}, scratch.as<double>(), stream());
  launch(sum_kernel, dim3(1), 1, stream(), out.as<double>(), x.as<double>(), x.numel());
}

void CudaOps::do_clip_scale(Tensor scale, Tensor sq, double max_norm) {
  launch(clip_scale_kernel, dim3(1), 1, stream(), scale.as<float>(), sq.as<double>(), sq.numel(), max_norm);
}

void CudaOps::do_checksum(Tensor out, Tensor x, Tensor scratch) {
  const int64_t parts = reduce_parts(x.numel());
  const auto kernel = aligned({x.data}) ? checksum_kernel<true> : checksum_kernel<false>;
  launch(kernel, grid_of(parts, 1), kBlock, stream(), scratch.as<uint64_t>(), x.as<uint8_t>(), static_cast<int64_t>(x.bytes()));
  launch(checksum_fold_kernel, dim3(1), row_threads(parts, 4), stream(), out.as<int32_t>(), scratch.as<uint64_t>(), parts);
}

void CudaOps::do_largest(Tensor out, Tensor x, bool absolute, Tensor scratch) {
  const int64_t parts = reduce_parts(x.numel());
  with_type(x.dtype, [&](auto t) {
    using T = decltype(t);
    const auto kernel = aligned({x.data}) ? largest_kernel<T, true> : largest_kernel<T, false>;
    launch(kernel, grid_of(parts, 1), kBlock, stream(), scratch.as<double>(), x.as<T>(), x.numel(), absolute);
  });
  launch(largest_fold_kernel, dim3(1), row_threads(parts, 4), stream(), out.as<double>(), scratch.as<double>(), parts);
}

}  // namespace hlat
