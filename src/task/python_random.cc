#include "task/python_random.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include "base/error.h"

namespace hlat {
namespace {

// The generator's state from the words of a seed: init_by_array of Matsumoto and Nishimura, which Python uses for whole numbers.
class SeedByArray {
 public:
  using result_type = uint32_t;
  explicit SeedByArray(uint64_t seed) : key_{static_cast<uint32_t>(seed)} {
    if (seed >> 32 != 0) key_.push_back(static_cast<uint32_t>(seed >> 32));
  }

  template <class Iterator>
  void generate(Iterator begin, Iterator end) {
    const size_t n = static_cast<size_t>(end - begin);
    std::vector<uint32_t> state(n);
    state[0] = 19650218u;
    for (size_t i = 1; i < n; ++i) state[i] = 1812433253u * (state[i - 1] ^ state[i - 1] >> 30) + static_cast<uint32_t>(i);
    size_t at = 1;
    const auto advance = [&] {
      if (++at < n) return;
      state[0] = state[n - 1];
      at = 1;
    };
    for (size_t step = 0, word = 0; step < std::max(n, key_.size()); ++step, word = (word + 1) % key_.size()) {
      state[at] = (state[at] ^ (state[at - 1] ^ state[at - 1] >> 30) * 1664525u) + key_[word] + static_cast<uint32_t>(word);
      advance();
    }
    for (size_t step = 0; step + 1 < n; ++step) {
      state[at] = (state[at] ^ (state[at - 1] ^ state[at - 1] >> 30) * 1566083941u) - static_cast<uint32_t>(at);
      advance();
    }
    state[0] = 0x80000000u;
    std::copy(state.begin(), state.end(), begin);
  }

 private:
  std::vector<uint32_t> key_;
};

std::mt19937 seeded(uint64_t seed) {
  SeedByArray words(seed);
  return std::mt19937(words);
}

// Up to which size of the population Python keeps a list of what is left, instead of a set of what was drawn.
uint64_t largest_pool(uint32_t count) {
  uint64_t table = 1;
  while (table < uint64_t{3} * count) table *= 4;
  return count > 5 ? 21 + table : 21;
}

}  // namespace

PythonRandom::PythonRandom(uint64_t seed) : engine_(seeded(seed)) {}

uint32_t PythonRandom::below(uint32_t bound) {
  HLAT_CHECK(bound > 0, "a number below 0");
  const int unused = std::countl_zero(bound);
  for (;;) {
    const auto drawn = static_cast<uint32_t>(engine_() >> unused);
    if (drawn < bound) return drawn;
  }
}

std::vector<uint32_t> PythonRandom::sample(uint32_t population, uint32_t count) {
  HLAT_CHECK(count <= population, "{} of {}", count, population);
  std::vector<uint32_t> out;
  if (population <= largest_pool(count)) {
    std::vector<uint32_t> pool(population);
    std::iota(pool.begin(), pool.end(), 0u);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t drawn = below(population - i);
      out.push_back(pool[drawn]);
      pool[drawn] = pool[population - i - 1];
    }
    return out;
  }
  std::set<uint32_t> taken;
  while (out.size() < count) {
    const uint32_t drawn = below(population);
    if (taken.insert(drawn).second) out.push_back(drawn);
  }
  return out;
}

}  // namespace hlat
