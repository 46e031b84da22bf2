// Longer words.
#include "data/tokenizer/word_cache.h"

#include <algorithm>
#include <functional>

namespace hlat {
namespace {

constexpr size_t kSlots = size_t{1} << 17;
constexpr size_t kArena = size_t{4} << 20;  // bytes of words, and as many of ids

}  // namespace

LongWordCache::LongWordCache() : slots_(kSlots) {}

const LongWordCache::Slot* LongWordCache::slot(std::string_view word, uint64_t hash) const {
  for (size_t i = hash & (kSlots - 1);; i = (i + 1) & (kSlots - 1)) {
    const Slot& s = slots_[i];
    if (s.bytes == 0 || (s.hash == hash && std::string_view(&bytes_[s.bytes_at], s.bytes) == word)) return &s;
  }
}

bool LongWordCache::find(std::string_view word, std::span<const int32_t>& ids) const {
  const Slot* s = slot(word, std::hash<std::string_view>{}(word));
  if (s->bytes == 0) return false;
  ids = {ids_.data() + s->ids_at, s->count};
  return true;
}

void LongWordCache::put(std::string_view word, std::span<const int32_t> ids) {
  if (used_ >= kSlots / 2 || bytes_.size() + word.size() > kArena || (ids_.size() + ids.size()) * sizeof(int32_t) > kArena) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    bytes_.clear();
    ids_.clear();
    used_ = 0;
  }
  const uint64_t hash = std::hash<std::string_view>{}(word);
  slots_[slot(word, hash) - slots_.data()] = {hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(ids_.size()),
                                              static_cast<uint32_t>(word.size()), static_cast<uint32_t>(ids.size())};
  bytes_.insert(bytes_.end(), word.begin(), word.end());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ++used_;
}

}  // namespace hlat
