// What words became, for one thread: bounded memory, nothing shared. Short words with few ids are two to a cache line and looked
// up by their bytes in two registers; longer ones, and all that were driven out, are in open-addressed tables over flat arenas.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace hlat::tokenizer {

class ShortWordCache {
 public:
  static constexpr size_t kMaxBytes = 15;
  static constexpr size_t kMaxIds = 3;

  struct Key {
    uint64_t low;
    uint64_t high;  // its top byte is the length
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::array<int32_t, kMaxIds> ids;
    uint32_t count;
  };

  ShortWordCache() : sets_(size_t{1} << kBits) {}

  // `word` is not empty and has at most kMaxBytes; 16 bytes from its start can be read where `readable` says so.
  static Key key_of(std::string_view word, bool readable) {
    std::array<uint64_t, 2> k = {0, 0};
    if (readable) [[likely]] {
      std::memcpy(k.data(), word.data(), 16);
      const auto n = static_cast<unsigned>(word.size());
      const uint64_t low_mask = n >= 8 ? ~uint64_t{0} : (uint64_t{1} << n * 8) - 1;
      const uint64_t high_mask = n <= 8 ? 0 : (uint64_t{1} << (n - 8) * 8) - 1;
      k[0] &= low_mask;
      k[1] &= high_mask;
    } else {
      std::memcpy(k.data(), word.data(), word.size());
    }
    return {k[0], k[1] | uint64_t{word.size()} << 56};
  }

  static std::string_view bytes_of(const Key& key) { return {reinterpret_cast<const char*>(&key), key.high >> 56}; }

  void prefetch(const Key& key) const { __builtin_prefetch(&sets_[slot(key)]); }

  // Null when the word is not there.
  const Entry* find(const Key& key) {
    Set& s = sets_[slot(key)];
    if (s.ways[0].key == key) [[likely]]
      return &s.ways[0];
    if (s.ways[1].key != key) return nullptr;
    std::swap(s.ways[0], s.ways[1]);
    return &s.ways[0];
  }

  // A new word takes the second place of its set, the first only when it is asked for again: rare words do not drive out others.
  void put(const Key& key, std::span<const int32_t> ids) {
    Entry& e = sets_[slot(key)].ways[1];
    e = {key, {}, static_cast<uint32_t>(ids.size())};
    std::copy(ids.begin(), ids.end(), e.ids.begin());
  }

 private:
  static constexpr int kBits = 15;
  struct alignas(64) Set {
    std::array<Entry, 2> ways{};
  };

  static size_t slot(const Key& k) {
    const uint64_t h = (k.low ^ (k.high << 29 | k.high >> 35)) * 0x9E3779B97F4A7C15u;
    return (h ^ (k.high * 0xC2B2AE3D27D4EB4Fu)) >> (64 - kBits);
  }

  std::vector<Set> sets_;
};

// Two generations of a table: when the newer is full it becomes the older, and what is asked for again moves on to the newer.
class LongWordCache {
 public:
  static constexpr size_t kMaxBytes = 512;

  // False when the word is not there. The ids are good until the next put or find.
  bool find(std::string_view word, std::span<const int32_t>& ids);
  void put(std::string_view word, std::span<const int32_t> ids) { put(word, hash(word), ids); }

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t bytes_at = 0;
    uint32_t ids_at = 0;
    uint32_t bytes = 0;
    uint32_t count = 0;
  };
  struct Generation {
    std::vector<Slot> slots;
    std::vector<char> bytes;
    std::vector<int32_t> ids;
    size_t used = 0;

    Generation();
    size_t slot(std::string_view word, uint64_t hash) const;  // where the word is, or the empty slot where it would be
    bool full(size_t more_bytes, size_t more_ids) const;
    void clear();
  };
  static uint64_t hash(std::string_view word) { return std::hash<std::string_view>{}(word); }
  void put(std::string_view word, uint64_t hash, std::span<const int32_t> ids);

  Generation newer_;
  Generation older_;
};

}  // namespace hlat::tokenizer
