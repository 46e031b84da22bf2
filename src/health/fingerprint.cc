#include "health/fingerprint.h"

#include <cstring>

namespace hlat {

uint64_t fingerprint_word(uint64_t index, uint64_t word) {
  uint64_t z = word + (index + 1) * 0x9e3779b97f4a7c15ull;
  for (int i = 0; i < 2; ++i) z = (z ^ z >> 32) * 0xd6e8feb86659fd93ull;
  return z ^ z >> 32;
}

uint64_t fingerprint(const void* data, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t sum = 0;
  const size_t whole = bytes / sizeof(uint64_t);
  for (size_t i = 0; i < whole; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, p + i * sizeof word, sizeof word);
    sum += fingerprint_word(i, word);
  }
  if (const size_t rest = bytes % sizeof(uint64_t); rest > 0) {
    uint64_t word = 0;
    std::memcpy(&word, p + whole * sizeof word, rest);
    sum += fingerprint_word(whole, word);
  }
  return sum;
}

}  // namespace hlat
