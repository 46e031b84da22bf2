#include "tensor/tensor.h"

namespace hlat {

std::string Shape::str() const {
  std::string s = "(";
  for (int i = 0; i < rank; ++i) s += fmt::format("{}{}", i ? ", " : "", (*this)[i]);
  return s + ")";
}

Tensor Tensor::contiguous(void* data, DType dtype, const Shape& shape) {
  Tensor t;
  t.data = data;
  t.dtype = dtype;
  t.shape = shape;
  int64_t step = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    t.stride[static_cast<size_t>(i)] = step;
    step *= shape[i];
  }
  return t;
}

bool Tensor::is_contiguous() const {
  if (numel() == 0) return true;
  int64_t step = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (dim(i) != 1 && stride[static_cast<size_t>(i)] != step) return false;
    step *= dim(i);
  }
  return true;
}

Tensor Tensor::viewed(const Shape& as) const {
  HLAT_CHECK(is_contiguous() && as.numel() <= numel(), "{} viewed as {}", str(), as.str());
  Tensor t = contiguous(data, dtype, as);
  t.allocation = allocation;
  return t;
}

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  HLAT_CHECK(rank() >= 1 && 0 <= begin && begin <= end && end <= dim(0), "rows [{}, {}) of {}", begin, end, str());
  Tensor t = *this;
  if (data != nullptr) t.data = as<std::byte>() + begin * stride[0] * static_cast<int64_t>(size_of(dtype));
  t.shape.dim[0] = end - begin;
  return t;
}

std::string Tensor::str() const { return fmt::format("{}{}", name_of(dtype), shape.str()); }

}  // namespace hlat
