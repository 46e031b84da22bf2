#include "health/known_product.h"

#include <bit>
#include <cstring>

#include "base/bf16.h"
#include "base/error.h"
#include "base/rng.h"
#include "health/fingerprint.h"

namespace hlat {

namespace {

std::vector<int8_t> random_table(int64_t elements, NoiseKey key) {
  RandomStream random(key);
  std::vector<int8_t> table(static_cast<size_t>(elements));
  for (int8_t& x : table) {
    const auto draw = static_cast<int>(random.below(8));  // -4 to -1, 1 to 4
    x = static_cast<int8_t>(draw < 4 ? draw - 4 : draw - 3);
  }
  return table;
}

}  // namespace

KnownProduct::KnownProduct(int64_t size, uint64_t seed)
    : size_(size),
      f_(random_table(kRowsA * kPeriod, {.seed = seed, .stream = 1, .purpose = Noise::data})),
      g_(random_table(kRowsB * kPeriod, {.seed = seed, .stream = 2, .purpose = Noise::data})),
      c_(static_cast<size_t>(kRowsA * kRowsB)) {
  constexpr int64_t kMost = int64_t{1} << 19;  // 16 times it are 2^23
  HLAT_CHECK(size > 0 && size % kPeriod == 0 && size <= kMost, "a known product of size {}", size);
  const int64_t periods = size / kPeriod;
  for (int64_t i = 0; i < kRowsA; ++i)
    for (int64_t j = 0; j < kRowsB; ++j) {
      int64_t sum = 0;
      for (int64_t q = 0; q < kPeriod; ++q) sum += f_[static_cast<size_t>(i * kPeriod + q)] * g_[static_cast<size_t>(j * kPeriod + q)];
      c_[static_cast<size_t>(i * kRowsB + j)] = static_cast<float>(sum * periods);
    }
}

std::vector<std::byte> KnownProduct::spread(const Table& table, int64_t rows, DType dtype) const {
  HLAT_CHECK(dtype == DType::f32 || dtype == DType::bf16, "a known product of this type");
  const size_t element = size_of(dtype);
  std::vector<std::byte> out(static_cast<size_t>(size_ * size_) * element);
  std::byte* to = out.data();
  for (int64_t i = 0; i < size_; ++i)
    for (int64_t k = 0; k < size_; ++k, to += element) {
      const auto value = static_cast<float>(table[static_cast<size_t>(i % rows * kPeriod + k % kPeriod)]);
      if (dtype == DType::f32) {
        std::memcpy(to, &value, element);
      } else {
        const bf16 rounded = to_bf16(value);
        std::memcpy(to, &rounded, element);
      }
    }
  return out;
}

std::vector<std::byte> KnownProduct::a(DType dtype) const { return spread(f_, kRowsA, dtype); }
std::vector<std::byte> KnownProduct::b(DType dtype) const { return spread(g_, kRowsB, dtype); }

// The size is even, so a word of the fingerprint is two elements of one row.
uint64_t KnownProduct::fingerprint() const {
  uint64_t sum = 0, index = 0;
  for (int64_t i = 0; i < size_; ++i)
    for (int64_t j = 0; j < size_; j += 2) {
      const uint64_t low = std::bit_cast<uint32_t>(at(i, j)), high = std::bit_cast<uint32_t>(at(i, j + 1));
      sum += fingerprint_word(index++, high << 32 | low);
    }
  return sum;
}

std::optional<std::string> KnownProduct::wrong(std::span<const float> c) const {
  HLAT_CHECK(static_cast<int64_t>(c.size()) == size_ * size_, "{} elements of a product of {} x {}", c.size(), size_, size_);
  int64_t count = 0, first = 0;
  for (int64_t e = 0; e < size_ * size_; ++e)
    if (std::bit_cast<uint32_t>(c[static_cast<size_t>(e)]) != std::bit_cast<uint32_t>(at(e / size_, e % size_)) && count++ == 0) first = e;
  if (count == 0) return {};
  const int64_t i = first / size_, j = first % size_;
  return fmt::format("element ({}, {}) is {}, not {}; {} of {} elements are wrong", i, j, c[static_cast<size_t>(first)], at(i, j), count,
                     size_ * size_);
}

}  // namespace hlat
