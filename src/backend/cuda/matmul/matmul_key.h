// What tells one matmul from another when an algorithm is chosen for it: shape, layouts, types, alignments and, of FP8, how sums are kept.
// The text names it in the cache of choices and in checkpoints, so that of a call never changes.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "ops/ops.h"

namespace hlat {

// The bytes a pointer is aligned to, at most 16.
uint32_t alignment_of(const Tensor& t);

struct MatmulKey {
  // A residual is a sum that s accumulates, laid out as c.
  MatmulKey(const MatmulShape& shape, const Tensor& c, const Tensor& a, const Tensor& b, bool fast);

  auto tied() const {
    return std::tie(s.m, s.n, s.k, s.trans_a, s.trans_b, s.accumulate, s.a, s.b, s.c, fast_sums, ldc, lda, ldb, align_c, align_a, align_b);
  }
  bool operator<(const MatmulKey& other) const { return tied() < other.tied(); }
  std::string str() const;

  MatmulShape s;
  bool fast_sums;
  int64_t ldc, lda, ldb;
  uint32_t align_c, align_a, align_b;
};

}  // namespace hlat
