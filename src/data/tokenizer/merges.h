// The merges of a BPE model and the merging itself. A word starts as one symbol per byte or character; the pair of neighbours
// with the lowest rank becomes one symbol, the leftmost first among equals, until no pair has a rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hlat::tokenizer {

// Pair of symbols -> rank and merged symbol: open addressing in one flat array.
class PairTable {
 public:
  struct Merge {
    uint32_t rank;
    int32_t id;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit PairTable(size_t pairs);
  void set(int32_t a, int32_t b, Merge merge);  // the last one of a pair counts; at most `pairs` different ones

  Merge find(int32_t a, int32_t b) const {
    const uint64_t key = key_of(a, b);
    for (size_t i = slot(key);; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return slots_[i].merge;
      if (slots_[i].key == kEmpty) return {kNone, -1};
    }
  }

 private:
  struct Slot {
    uint64_t key;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = UINT64_MAX;  // no pair has it: ids are not negative, and kUnknown (-1) has no merges

  static uint64_t key_of(int32_t a, int32_t b) { return uint64_t{static_cast<uint32_t>(a)} << 32 | static_cast<uint32_t>(b); }
  size_t slot(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }

  std::vector<Slot> slots_;
  size_t mask_ = 0;
  int shift_ = 0;
};

// Merges words; keeps its working memory. A symbol of -1 never merges.
class Merger {
 public:
  explicit Merger(const PairTable& pairs) : pairs_(pairs), recent_(size_t{1} << kRecentBits, {UINT64_MAX, {PairTable::kNone, -1}}) {}
  // Merges in place, returns how many symbols are left. Time n log n in the length.
  size_t merge(std::span<int32_t> symbols);

 private:
  struct Candidate {
    uint32_t rank;
    uint32_t at;
    int32_t left;
    int32_t right;
  };
  size_t merge_short(std::span<int32_t> symbols);
  size_t merge_long(std::span<int32_t> symbols);
  void push(const std::span<int32_t>& symbols, uint32_t at);

  // The whole table is far larger than a core's caches, the pairs that are asked for again and again are not.
  PairTable::Merge find(int32_t a, int32_t b) {
    const uint64_t key = uint64_t{static_cast<uint32_t>(a)} << 32 | static_cast<uint32_t>(b);
    Recent& r = recent_[(key * 0x9E3779B97F4A7C15u) >> (64 - kRecentBits)];
    if (r.key != key) r = {key, pairs_.find(a, b)};
    return r.merge;
  }

  static constexpr int kRecentBits = 13;
  struct Recent {
    uint64_t key;
    PairTable::Merge merge;
  };

  const PairTable& pairs_;
  std::vector<Recent> recent_;
  std::vector<Candidate> heap_;
  std::vector<uint32_t> next_;
  std::vector<uint32_t> before_;
};

}  // namespace hlat::tokenizer
