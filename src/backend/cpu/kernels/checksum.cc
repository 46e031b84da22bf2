// The fingerprint of Ops::checksum over 8-byte words. The words are independent, so the compiler turns the loop into vectors.
#include <cstring>

#include "backend/cpu/kernels/declare.h"

namespace hlat::HLAT_ISA {
namespace {

inline uint64_t mixed(uint64_t word, int64_t index) {
  uint64_t z = word + static_cast<uint64_t>(index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93u;
  return z ^ (z >> 32);
}

uint64_t checksum(const void* x, int64_t bytes, int64_t first_word) {
  const auto* p = static_cast<const char*>(x);
  const int64_t words = bytes / 8;
  uint64_t sum = 0;
  for (int64_t i = 0; i < words; ++i) {
    uint64_t word;
    std::memcpy(&word, p + 8 * i, sizeof word);
    sum += mixed(word, first_word + i);
  }
  if (bytes % 8 != 0) {
    uint64_t word = 0;
    std::memcpy(&word, p + 8 * words, static_cast<size_t>(bytes % 8));
    sum += mixed(word, first_word + words);
  }
  return sum;
}

}  // namespace

void fill_checksum(CpuKernels& k) { k.checksum = checksum; }

}  // namespace hlat::HLAT_ISA
