// A trivially copyable, non-owning view of device memory. It never allocates, frees or touches the device.
// Memory comes from a Region, and every view says which of its allocations it lies in: a recorded op names its arguments by that.
// A view from a measuring Region has no data and must not be dereferenced.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/error.h"
#include "tensor/dtype.h"

namespace hlat {

struct Shape {
  int rank = 0;
  std::array<int64_t, 4> dim{};

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    HLAT_CHECK(dims.size() <= 4, "rank {}", dims.size());
    for (const int64_t d : dims) dim[static_cast<size_t>(rank++)] = d;
  }
  int64_t operator[](int i) const { return dim[static_cast<size_t>(i)]; }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= (*this)[i];
    return n;
  }
  bool operator==(const Shape&) const = default;
  std::string str() const;
};

using AllocationId = uint32_t;  // see Region; 0: memory of no region

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  AllocationId allocation = 0;
  Shape shape;
  std::array<int64_t, 4> stride{};  // in elements

  static Tensor contiguous(void* data, DType dtype, const Shape& shape);

  bool defined() const { return shape.rank > 0; }
  int rank() const { return shape.rank; }
  int64_t dim(int i) const { return shape[i]; }
  int64_t numel() const { return shape.numel(); }
  size_t bytes() const { return static_cast<size_t>(numel()) * size_of(dtype); }
  bool is_contiguous() const;

  // The first elements of a contiguous tensor in another shape.
  Tensor viewed(const Shape& as) const;
  // Rows [begin, end) of the first dimension.
  Tensor rows(int64_t begin, int64_t end) const;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  std::string str() const;  // "bf16(1024, 768)"
};

}  // namespace hlat
