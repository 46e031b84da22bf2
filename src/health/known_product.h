// A matrix product whose answer is known without computing it. Both factors are (S, S) and repeat small tables of integers:
//   a[i, k] = f[i mod 61, k mod 64],  b[j, k] = g[j mod 59, k mod 64],  64 divides S
//   c = a b^T:  c[i, j] = S / 64 * sum over q of f[i mod 61, q] g[j mod 59, q]
// Table entries are +-1 to +-4, exact in bf16, and sums stay below 2^24, exact in f32 in any order: the right answer has one set of bits.
// No entry is zero, so no sum is a negative zero.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace hlat {

class KnownProduct {
 public:
  KnownProduct(int64_t size, uint64_t seed);

  int64_t size() const { return size_; }
  std::vector<std::byte> a(DType dtype) const;  // f32 or bf16, row by row
  std::vector<std::byte> b(DType dtype) const;
  float at(int64_t i, int64_t j) const { return c_[static_cast<size_t>(i % kRowsA * kRowsB + j % kRowsB)]; }
  uint64_t fingerprint() const;  // of c in f32
  // Words on the first element of c that is not the known one, and how many there are; nothing when all are right.
  std::optional<std::string> wrong(std::span<const float> c) const;

 private:
  static constexpr int64_t kPeriod = 64, kRowsA = 61, kRowsB = 59;
  using Table = std::vector<int8_t>;
  std::vector<std::byte> spread(const Table& table, int64_t rows, DType dtype) const;

  int64_t size_;
  Table f_, g_;           // (kRowsA, kPeriod), (kRowsB, kPeriod)
  std::vector<float> c_;  // (kRowsA, kRowsB)
};

}  // namespace hlat
