// C = X W^T for the few rows of X that decoding has. Such a product waits for W: each of its rows is read once, by vectors, and nothing is
// packed.
#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/row_dots.h"

namespace hlat::HLAT_ISA {
namespace {

constexpr int kColumns = 4;     // rows of W at once
constexpr int64_t kBlock = 16;  // columns of C whose sums wait for their store together
#if defined(__AVX512F__)
constexpr int kRows = 4;  // of X at once: 16 sums in registers
#else
constexpr int kRows = 2;
#endif

// Sums of `count` columns of C for all rows, kBlock from row to row.
template <class T>
void block_sums(float* sums, const RowProductArgs& a, int64_t first, int64_t count) {
  const auto* x = static_cast<const T*>(a.x);
  for (int64_t n = 0; n < count; n += kColumns) {
    const T* row[kColumns];
    for (int64_t i = 0; i < kColumns; ++i) {
      const int64_t column = n + i < count ? n + i : count - 1;
      row[i] = static_cast<const T*>(a.w) + (first + column) * a.w_row;
    }
    int64_t r = 0;
    for (; r + kRows <= a.rows; r += kRows) row_dots<kRows, kColumns>(sums + r * kBlock + n, kBlock, x + r * a.x_row, a.x_row, row, a.k);
    for (; r < a.rows; ++r) row_dots<1, kColumns>(sums + r * kBlock + n, kBlock, x + r * a.x_row, a.x_row, row, a.k);
  }
}

template <class C>
void store_sums(const RowProductArgs& a, const float* sums, int64_t first, int64_t count) {
  for (int64_t r = 0; r < a.rows; ++r) {
    C* c = static_cast<C*>(a.c) + r * a.c_row + first;
    lanes(count, [&](int64_t i, int64_t m) {
      const vf sum = load_part(sums + r * kBlock + i, m);
      store_part(c + i, a.accumulate ? load_part(c + i, m) + sum : sum, m);
    });
  }
}

template <class T>
void row_product(const RowProductArgs& a) {
  float sums[kFewRows * kBlock];
  for (int64_t first = 0; first < a.columns; first += kBlock) {
    const int64_t count = a.columns - first < kBlock ? a.columns - first : kBlock;
    block_sums<T>(sums, a, first, count);
    if (a.c_bf16)
      store_sums<b16>(a, sums, first, count);
    else
      store_sums<float>(a, sums, first, count);
  }
}

}  // namespace

void fill_row_product(CpuKernels& k) {
  k.row_product[0] = row_product<float>;
  k.row_product[1] = row_product<b16>;
}

}  // namespace hlat::HLAT_ISA
