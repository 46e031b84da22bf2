// Where each rank's rows lie in a tensor whose rows (first dimension) are shared by part_of.
#pragma once

#include "base/part.h"
#include "tensor/tensor.h"

namespace hlat {

inline constexpr int64_t kSmallSum = 4 << 10;  // bytes of a tensor that is summed in one round

struct Shares {
  int64_t rows = 0;
  int64_t row_bytes = 0;
  int size = 1;

  static Shares of(const Tensor& full, int size) {
    int64_t row = static_cast<int64_t>(size_of(full.dtype));
    for (int i = 1; i < full.rank(); ++i) row *= full.dim(i);
    return {.rows = full.dim(0), .row_bytes = row, .size = size};
  }
  int64_t begin(int rank) const { return part_of(rows, rank, size).begin * row_bytes; }
  int64_t bytes(int rank) const { return part_of(rows, rank, size).count * row_bytes; }
  int64_t total() const { return rows * row_bytes; }
};

}  // namespace hlat
