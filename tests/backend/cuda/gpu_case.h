// Operands of one matmul or attention on the GPU, with everything a check and a timing need.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/gpu_reference.h"
#include "ops/ops.h"
#include "tensor/columns.h"

namespace hlat {

class Gpu {
 public:
  Gpu() {
    HLAT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    HLAT_CUDA(cudaEventCreate(&begin_));
    HLAT_CUDA(cudaEventCreate(&end_));
  }
  cudaStream_t stream() const { return stream_; }
  void sync() const { HLAT_CUDA(cudaDeviceSynchronize()); }

  // Lives as long as the returned tensors' owner list.
  std::shared_ptr<void> allocate(size_t bytes) const {
    void* p = nullptr;
    HLAT_CUDA(cudaMalloc(&p, std::max<size_t>(bytes, 256)));
    return {p, [](void* q) { cudaFree(q); }};
  }

  void refill(const Tensor& t, uint64_t seed, float std = 0.05f) const {
    gpu_reference::fill(t.data, extent(t), t.dtype == DType::bf16, std, seed);
  }
  void poison(const Tensor& t) const {  // NaN
    HLAT_CUDA(cudaMemset(t.data, 0xff, t.bytes()));
    sync();
  }
  void copy(const Tensor& to, const Tensor& from) const {
    HLAT_CUDA(cudaMemcpy(to.data, from.data, static_cast<size_t>(extent(from)) * size_of(from.dtype), cudaMemcpyDeviceToDevice));
    sync();  // such a copy returns before it is done
  }
  bool differ(const Tensor& a, const Tensor& b) const {
    return gpu_reference::differing_bytes(a.data, b.data, extent(a) * static_cast<int64_t>(size_of(a.dtype))) != 0;
  }
  // The elements from the first to the last, gaps between rows included.
  static int64_t extent(const Tensor& t) { return t.rank() == 2 ? (t.dim(0) - 1) * t.stride[0] + t.dim(1) : t.numel(); }

  // Milliseconds of one call of each: the median of runs of several calls, taken in turn.
  std::vector<double> time_ms(const std::vector<std::function<void()>>& works) const {
    const auto run = [&](const std::function<void()>& work, int times) {
      HLAT_CUDA(cudaEventRecord(begin_, stream_));
      for (int i = 0; i < times; ++i) work();
      HLAT_CUDA(cudaEventRecord(end_, stream_));
      HLAT_CUDA(cudaEventSynchronize(end_));
      float ms = 0;
      HLAT_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
      return static_cast<double>(ms) / times;
    };
    constexpr size_t kRounds = 11;
    std::vector<double> medians;
    std::vector<std::vector<double>> samples(works.size());
    for (size_t round = 0; round < kRounds; ++round)
      for (size_t i = 0; i < works.size(); ++i) {
        const double last = round == 0 ? run(works[i], 1) : samples[i].back();
        samples[i].push_back(run(works[i], std::clamp(static_cast<int>(4 / std::max(last, 1e-3)), 1, 20)));
      }
    for (std::vector<double>& s : samples) {
      std::sort(s.begin(), s.end());
      medians.push_back(s[kRounds / 2]);
    }
    return medians;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// Tensors that own their memory together.
class Buffers {
 public:
  explicit Buffers(const Gpu& gpu) : gpu_(gpu) {}
  // pad: unused columns on both sides.
  Tensor matrix(DType dtype, int64_t rows, int64_t cols, int64_t pad = 0) {
    Tensor t = Tensor::contiguous(nullptr, dtype, {rows, cols + 2 * pad});
    t.data = take(t.bytes());
    return pad == 0 ? t : columns(t, pad, pad + cols);
  }
  Tensor tensor(DType dtype, const Shape& shape) {
    Tensor t = Tensor::contiguous(nullptr, dtype, shape);
    t.data = take(t.bytes());
    return t;
  }
  Tensor bytes(size_t count) { return tensor(DType::f32, {static_cast<int64_t>((count + 3) / 4)}); }
  std::vector<gpu_reference::Sample> download(const Tensor& t, int64_t count) const {
    std::vector<gpu_reference::Sample> host(static_cast<size_t>(count));
    HLAT_CUDA(cudaMemcpy(host.data(), t.data, host.size() * sizeof(gpu_reference::Sample), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  void* take(size_t bytes) {
    owned_.push_back(gpu_.allocate(bytes));
    return owned_.back().get();
  }
  const Gpu& gpu_;
  std::vector<std::shared_ptr<void>> owned_;
};

struct MatmulCase {
  MatmulShape shape;
  Buffers buffers;
  Tensor a, b, c, before, again, scratch, samples;
  int64_t count;

  MatmulCase(const Gpu& gpu, const MatmulShape& s, int64_t pad) : shape(s), buffers(gpu), count(std::min<int64_t>(s.m * s.n, 4096)) {
    a = s.trans_a ? buffers.matrix(s.a, s.k, s.m, pad) : buffers.matrix(s.a, s.m, s.k, pad);
    b = s.trans_b ? buffers.matrix(s.b, s.n, s.k, pad) : buffers.matrix(s.b, s.k, s.n, pad);
    c = buffers.matrix(s.c, s.m, s.n, pad);
    before = buffers.matrix(s.c, s.m, s.n, pad);
    again = buffers.matrix(s.c, s.m, s.n, pad);
    samples = buffers.bytes(static_cast<size_t>(count) * sizeof(gpu_reference::Sample));
    gpu.refill(a, 1);
    gpu.refill(b, 2);
  }

  std::string str() const {
    return fmt::format("{}x{}x{}{}{}{} {} {} ld {}", shape.m, shape.n, shape.k, shape.trans_a ? " ta" : "", shape.trans_b ? " tb" : "",
                       shape.accumulate ? " +=" : "", name_of(shape.a), name_of(shape.c), c.stride[0]);
  }

  // The largest error over its tolerance: half an ulp of c plus the roundings of an f32 sum of k terms. Where cuBLASLt adds to a bf16 c
  // it rounds the product to bf16 before it adds: half an ulp of the product more.
  double worst(const Gpu&) const {
    const auto view = [](const Tensor& t, bool transposed) {
      return gpu_reference::Matrix{t.data, t.dtype == DType::bf16, t.stride[0], transposed};
    };
    gpu_reference::matmul(static_cast<gpu_reference::Sample*>(samples.data), count, view(c, false), view(before, false),
                          view(a, shape.trans_a), view(b, shape.trans_b), shape.m, shape.n, shape.k, shape.accumulate);
    const double rounding = shape.c == DType::bf16 ? 0x1p-8 : 0x1p-24, units = 4 * std::sqrt(static_cast<double>(shape.k + 1));
    double largest = 0;
    for (const auto& s : buffers.download(samples, count)) {
      const double twice = shape.accumulate && shape.c == DType::bf16 ? rounding * s.product : 0;
      const double error = std::abs(s.got - s.ref) / (rounding * std::abs(s.ref) + twice + units * 0x1p-24 * s.magnitude + 1e-30);
      if (!(error <= largest)) largest = error;  // NaN counts
    }
    return largest;
  }
};

struct AttentionErrors {
  double out, lse, dq, dk, dv;  // relative norms over the samples; lse: the largest absolute error
};

struct AttentionProbe {
  AttentionShape shape;
  Buffers buffers;
  Tensor qkv, out, lse, dout, dqkv, again, scratch_forward, scratch_backward;

  AttentionProbe(const Gpu& gpu, const AttentionShape& s, DType dtype) : shape(s), buffers(gpu) {
    qkv = buffers.matrix(dtype, s.tokens(), s.qkv_width());
    dqkv = buffers.matrix(dtype, s.tokens(), s.qkv_width());
    again = buffers.matrix(dtype, s.tokens(), s.qkv_width());
    out = buffers.matrix(dtype, s.tokens(), s.out_width());
    dout = buffers.matrix(dtype, s.tokens(), s.out_width());
    lse = buffers.tensor(DType::f32, {s.batch, s.heads, s.seq});
    gpu.refill(qkv, 5, 1.0f);
    gpu.refill(dout, 6, 1.0f);
  }

  AttentionErrors errors(const Gpu& gpu) {
    using gpu_reference::Sample;
    constexpr int64_t kRows = 48;
    const int64_t values = kRows * shape.head_dim;
    Buffers temporary(gpu);
    const auto samples = [&](int64_t count) { return temporary.bytes(static_cast<size_t>(count) * sizeof(Sample)); };
    const Tensor o = samples(values), l = samples(kRows), q = samples(values), k = samples(values), v = samples(values);
    const Tensor work = temporary.bytes(static_cast<size_t>(kRows * shape.heads / shape.kv_heads * shape.seq) * 2 * sizeof(double));
    const gpu_reference::Attention x{shape.batch, shape.seq, shape.heads, shape.kv_heads, shape.head_dim, qkv.dtype == DType::bf16,
                                     qkv.data,    out.data,  dout.data,   dqkv.data,      lse.as<float>()};
    const auto at = [](const Tensor& t) { return static_cast<Sample*>(t.data); };
    gpu_reference::attention_forward(at(o), at(l), kRows, x, static_cast<double*>(work.data));
    gpu_reference::attention_dq(at(q), kRows, x, static_cast<double*>(work.data));
    gpu_reference::attention_dkv(at(k), at(v), kRows, x, static_cast<double*>(work.data));
    const auto relative = [&](const Tensor& t) {
      double error = 0, norm = 1e-4 * static_cast<double>(values);  // a gradient may be zero
      for (const Sample& s : temporary.download(t, values)) error += (s.got - s.ref) * (s.got - s.ref), norm += s.ref * s.ref;
      return std::sqrt(error / norm);
    };
    double lse_error = 0;
    for (const Sample& s : temporary.download(l, kRows)) {
      const double error = std::abs(s.got - s.ref);
      if (!(error <= lse_error)) lse_error = error;
    }
    return {relative(o), lse_error, relative(q), relative(k), relative(v)};
  }
};

}  // namespace hlat
