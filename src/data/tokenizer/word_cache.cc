// Longer words.
#include "data/tokenizer/word_cache.h"

namespace hlat::tokenizer {
namespace {

// Of one generation.
constexpr size_t kSlots = size_t{1} << 17;
constexpr size_t kWords = kSlots / 8 * 5;
constexpr size_t kBytes = size_t{2} << 20;
constexpr size_t kIds = size_t{1} << 19;

}  // namespace

LongWordCache::Generation::Generation() : slots(kSlots) {}

size_t LongWordCache::Generation::slot(std::string_view word, uint64_t hash) const {
  for (size_t i = hash & (kSlots - 1);; i = (i + 1) & (kSlots - 1)) {
    const Slot& s = slots[i];
    if (s.bytes == 0 || (s.hash == hash && std::string_view(&bytes[s.bytes_at], s.bytes) == word)) return i;
  }
}

bool LongWordCache::Generation::full(size_t more_bytes, size_t more_ids) const {
  return used >= kWords || bytes.size() + more_bytes > kBytes || ids.size() + more_ids > kIds;
}

void LongWordCache::Generation::clear() {
  std::fill(slots.begin(), slots.end(), Slot{});
  bytes.clear();
  ids.clear();
  used = 0;
}

bool LongWordCache::find(std::string_view word, std::span<const int32_t>& ids) {
  const uint64_t h = hash(word);
  const Slot& s = newer_.slots[newer_.slot(word, h)];
  if (s.bytes != 0) {
    ids = {newer_.ids.data() + s.ids_at, s.count};
    return true;
  }
  const Slot old = older_.slots[older_.slot(word, h)];
  if (old.bytes == 0) return false;
  const std::span<const int32_t> found(older_.ids.data() + old.ids_at, old.count);
  // Where there is no room, putting it in would end the generation it is in.
  if (!newer_.full(word.size(), found.size())) put(word, h, found);
  ids = found;
  return true;
}

void LongWordCache::put(std::string_view word, uint64_t hash, std::span<const int32_t> ids) {
  if (newer_.full(word.size(), ids.size())) {
    std::swap(newer_, older_);
    newer_.clear();
  }
  newer_.slots[newer_.slot(word, hash)] = {hash, static_cast<uint32_t>(newer_.bytes.size()), static_cast<uint32_t>(newer_.ids.size()),
                                           static_cast<uint32_t>(word.size()), static_cast<uint32_t>(ids.size())};
  newer_.bytes.insert(newer_.bytes.end(), word.begin(), word.end());
  newer_.ids.insert(newer_.ids.end(), ids.begin(), ids.end());
  ++newer_.used;
}

}  // namespace hlat::tokenizer
