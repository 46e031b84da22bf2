#include "backend/cuda/matmul/matmul_key.h"

#include <fmt/format.h>

#include <algorithm>

namespace hlat {

namespace {

// A single row may have any stride.
int64_t leading(const Tensor& t) { return std::max(t.stride[0], t.dim(1)); }

}  // namespace

uint32_t alignment_of(const Tensor& t) {
  const auto address = reinterpret_cast<uintptr_t>(t.data);
  uint32_t bytes = 16;
  while (address % bytes != 0) bytes /= 2;
  return bytes;
}

MatmulKey::MatmulKey(const MatmulShape& shape, const Tensor& c, const Tensor& a, const Tensor& b, bool fast)
    : s(shape),
      fast_sums(fast),
      ldc(leading(c)),
      lda(leading(a)),
      ldb(leading(b)),
      align_c(alignment_of(c)),
      align_a(alignment_of(a)),
      align_b(alignment_of(b)) {}

std::string MatmulKey::str() const {
  // The operands of wider products share a type.
  const std::string operands = is_fp8(s.a) ? fmt::format("{} x {}", name_of(s.a), name_of(s.b)) : std::string(name_of(s.a));
  return fmt::format("{}x{}x{} {}{}{} {} {}{} ld {} {} {} align {} {} {}", s.m, s.n, s.k, s.trans_a ? 't' : 'n', s.trans_b ? 't' : 'n',
                     s.accumulate ? " +=" : "", operands, name_of(s.c), fast_sums ? " fast" : "", ldc, lda, ldb, align_c, align_a, align_b);
}

}  // namespace hlat
