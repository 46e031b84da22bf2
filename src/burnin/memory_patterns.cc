#include "burnin/memory_patterns.h"

#include <fmt/format.h>

namespace hlat {

namespace {

std::string first_wrong_word(const TestedMemory& memory, int pattern, size_t block, std::span<const uint64_t> words) {
  std::vector<uint64_t> got(words.size());
  memory.read(block, got);
  for (size_t i = 0; i < words.size(); ++i)
    if (got[i] != words[i])
      return fmt::format("byte {} of what was tested: wrote {:016x}, read {:016x} ({})", (block * kBlockWords + i) * sizeof(uint64_t),
                         words[i], got[i], pattern_name(pattern));
  return fmt::format("block {} read wrong once, then right ({})", block, pattern_name(pattern));
}

}  // namespace

const char* pattern_name(int pattern) {
  constexpr const char* kNames[kPatterns] = {"checkerboard", "inverse checkerboard", "walking one", "walking zero", "address"};
  return kNames[pattern];
}

uint64_t pattern_word(int pattern, uint64_t index) {
  switch (pattern) {
    case 0: return 0x5555555555555555ull;
    case 1: return 0xaaaaaaaaaaaaaaaaull;
    case 2: return uint64_t{1} << (index % 64);
    case 3: return ~(uint64_t{1} << (index % 64));
    default: return index * sizeof(uint64_t);
  }
}

std::optional<std::string> test_patterns(const TestedMemory& memory, const std::function<bool()>& stop, uint64_t& tested) {
  std::vector<uint64_t> words(kBlockWords);
  const auto make = [&](int pattern, size_t block) {
    if (block > 0 && pattern_word(pattern, 0) == pattern_word(pattern, kBlockWords)) return;  // as the block before
    for (size_t i = 0; i < kBlockWords; ++i) words[i] = pattern_word(pattern, block * kBlockWords + i);
  };
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    size_t written = 0;
    for (; written < memory.blocks && (written == 0 || !stop()); ++written) {
      make(pattern, written);
      memory.write(written, words);
    }
    for (size_t block = 0; block < written; ++block) {
      make(pattern, block);
      if (!memory.holds(block, words)) return first_wrong_word(memory, pattern, block, words);
      tested += kBlockWords * sizeof(uint64_t);
    }
    if (stop()) break;
  }
  return {};
}

}  // namespace hlat
