// The patterns of a memory test, as 64-bit words: constant checkerboards, a walking bit, its inverse, and each word's own address. All of
// the memory is written before any of it is read, so that two addresses that are one show themselves in the last.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hlat {

inline constexpr int kPatterns = 5;
const char* pattern_name(int pattern);
uint64_t pattern_word(int pattern, uint64_t index);  // of word `index` of the memory

// Memory that is tested in blocks of kBlockWords words.
inline constexpr size_t kBlockWords = size_t{1} << 20;
struct TestedMemory {
  size_t blocks = 0;
  std::function<void(size_t block, std::span<const uint64_t> words)> write;
  std::function<bool(size_t block, std::span<const uint64_t> words)> holds;  // whether it reads back as this
  std::function<void(size_t block, std::span<uint64_t> words)> read;         // after it did not
};

// Words on the first wrong word; nothing when all patterns read back. stop: asked between blocks; true ends the test early.
// tested: bytes that were written and read are added to it.
std::optional<std::string> test_patterns(const TestedMemory& memory, const std::function<bool()>& stop, uint64_t& tested);

}  // namespace hlat
