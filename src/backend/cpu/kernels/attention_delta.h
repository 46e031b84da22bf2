// delta = sum over a head of dO * O, one number per query: the part of the softmax's backward that is common to a row.
#pragma once

#include "backend/cpu/kernels/simd.h"
#include "backend/cpu/kernels/table.h"

namespace hlat::HLAT_ISA {
namespace {

template <class T>
void row_products(float* delta, const AttentionBackwardArgs& a) {
  for (int64_t r = 0; r < a.seq; ++r) {
    vf acc{};
    const T* x = static_cast<const T*>(a.dout) + r * a.out_row;
    const T* y = static_cast<const T*>(a.out) + r * a.out_row;
    lanes(a.head_dim, [&](int64_t i, int64_t m) { acc += load_part(x + i, m) * load_part(y + i, m); });
    delta[r] = sum(acc);
  }
}

}  // namespace
}  // namespace hlat::HLAT_ISA
