// Host memory for tests: owning buffers handed out as Tensors, filled from keyed random numbers, and conversions between
// a tensor of any dtype and a vector of doubles. Buffers are separate heap blocks, so ASan sees an overrun of one element.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "base/bf16.h"
#include "base/fp8.h"
#include "base/rng.h"
#include "tensor/region.h"
#include "tensor/tensor.h"

namespace hlat {

inline double load_f64(const Tensor& t, int64_t element) {
  switch (t.dtype) {
    case DType::f32: return t.as<float>()[element];
    case DType::bf16: return to_float(t.as<bf16>()[element]);
    case DType::i32: return t.as<int32_t>()[element];
    case DType::f64: return t.as<double>()[element];
    case DType::f8e4m3: return to_float(t.as<f8e4m3>()[element]);
    case DType::f8e5m2: return to_float(t.as<f8e5m2>()[element]);
  }
  return 0;
}

// Rounds to nearest.
inline void store_f64(const Tensor& t, int64_t element, double value) {
  switch (t.dtype) {
    case DType::f32: t.as<float>()[element] = static_cast<float>(value); break;
    case DType::bf16: t.as<bf16>()[element] = to_bf16(static_cast<float>(value)); break;
    case DType::i32: t.as<int32_t>()[element] = static_cast<int32_t>(value); break;
    case DType::f64: t.as<double>()[element] = value; break;
    case DType::f8e4m3: t.as<f8e4m3>()[element] = to_e4m3(static_cast<float>(value)); break;
    case DType::f8e5m2: t.as<f8e5m2>()[element] = to_e5m2(static_cast<float>(value)); break;
  }
}

// Position in memory of element i (counted row by row) of a view with strided rows.
inline int64_t offset_of(const Tensor& t, int64_t i) {
  int64_t offset = 0;
  for (int d = t.rank() - 1; d >= 0; --d) {
    offset += i % t.dim(d) * t.stride[static_cast<size_t>(d)];
    i /= t.dim(d);
  }
  return offset;
}

inline std::vector<double> to_f64(const Tensor& t) {
  std::vector<double> out(static_cast<size_t>(t.numel()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = load_f64(t, offset_of(t, static_cast<int64_t>(i)));
  return out;
}

inline void from_f64(const Tensor& t, const std::vector<double>& values) {
  HLAT_CHECK(values.size() == static_cast<size_t>(t.numel()), "{} values for {}", values.size(), t.str());
  for (size_t i = 0; i < values.size(); ++i) store_f64(t, offset_of(t, static_cast<int64_t>(i)), values[i]);
}

// Standard normal numbers, the same for the same name whatever the dtype.
inline std::vector<double> normals(int64_t count, std::string_view name) {
  const NoiseKey key{.seed = 20240, .stream = hash_name(name), .purpose = Noise::sample, .step = 0};
  std::vector<double> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(normal_block(key, i / 4)[i % 4]);
  return out;
}

// Where buffers come from: host memory, or for a device backend memory that the host can read as well.
using Allocate = std::function<std::shared_ptr<std::byte>(size_t bytes)>;

inline std::shared_ptr<std::byte> allocate_host(size_t bytes) {
  const std::align_val_t align{kAlign};
  return {static_cast<std::byte*>(::operator new[](bytes, align)), [align](std::byte* p) { ::operator delete[](p, align); }};
}

class HostMemory {
 public:
  explicit HostMemory(Allocate allocate = allocate_host) : allocate_(std::move(allocate)) {}

  Tensor zeros(DType dtype, const Shape& shape) {
    Tensor t = Tensor::contiguous(nullptr, dtype, shape);
    t.data = buffer(t.bytes());
    return t;
  }
  Tensor from(DType dtype, const Shape& shape, const std::vector<double>& values) {
    const Tensor t = zeros(dtype, shape);
    from_f64(t, values);
    return t;
  }
  Tensor random(DType dtype, const Shape& shape, std::string_view name, double std = 1.0) {
    std::vector<double> values = normals(shape.numel(), name);
    for (double& v : values) v *= std;
    return from(dtype, shape, values);
  }
  // The same elements in another dtype.
  Tensor copy(DType dtype, const Tensor& t) { return from(dtype, t.shape, to_f64(t)); }
  // A real region over its own memory.
  Region region(Purpose purpose, size_t bytes) { return {purpose, buffer(bytes), bytes}; }

 private:
  std::byte* buffer(size_t bytes) {
    buffers_.push_back(allocate_(bytes));
    std::memset(buffers_.back().get(), 0, bytes);
    return buffers_.back().get();
  }

  Allocate allocate_;
  std::vector<std::shared_ptr<std::byte>> buffers_;
};

}  // namespace hlat
