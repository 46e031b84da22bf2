// Short words: a list of ranks, searched whole each time. Long words: a heap of candidates over a linked list.
#include "data/tokenizer/merges.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"

namespace hlat::tokenizer {
namespace {

constexpr size_t kShort = 64;  // symbols; longer words go through the heap
constexpr uint32_t kEnd = UINT32_MAX;

}  // namespace

PairTable::PairTable(size_t pairs) {
  const size_t size = std::bit_ceil(std::max<size_t>(16, pairs * 2));
  slots_.assign(size, {kEmpty, {kNone, -1}});
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
}

void PairTable::set(int32_t a, int32_t b, Merge merge) {
  HLAT_CHECK(a >= 0 && b >= 0, "pair {} {}", a, b);
  const uint64_t key = key_of(a, b);
  size_t i = slot(key);
  while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & mask_;
  slots_[i] = {key, merge};
}

size_t Merger::merge(std::span<int32_t> symbols) { return symbols.size() <= kShort ? merge_short(symbols) : merge_long(symbols); }

size_t Merger::merge_short(std::span<int32_t> symbols) {
  size_t n = symbols.size();
  if (n < 2) return n;
  std::array<PairTable::Merge, kShort> merges;  // of symbol i with its right neighbour
  for (size_t i = 0; i + 1 < n; ++i) merges[i] = find(symbols[i], symbols[i + 1]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (merges[i].rank < merges[best].rank) best = i;
    if (merges[best].rank == PairTable::kNone) break;
    symbols[best] = merges[best].id;
    std::copy(symbols.begin() + best + 2, symbols.begin() + n, symbols.begin() + best + 1);
    --n;
    if (best + 1 < n) {
      std::copy(merges.begin() + best + 2, merges.begin() + n, merges.begin() + best + 1);
      merges[best] = find(symbols[best], symbols[best + 1]);
    }
    if (best > 0) merges[best - 1] = find(symbols[best - 1], symbols[best]);
  }
  return n;
}

void Merger::push(const std::span<int32_t>& symbols, uint32_t at) {
  const uint32_t right = next_[at];
  if (right == kEnd) return;
  const PairTable::Merge m = find(symbols[at], symbols[right]);
  if (m.rank == PairTable::kNone) return;
  heap_.push_back({m.rank, at, symbols[at], symbols[right]});
}

size_t Merger::merge_long(std::span<int32_t> symbols) {
  HLAT_CHECK(symbols.size() < kEnd, "a word of {} symbols", symbols.size());
  const auto n = static_cast<uint32_t>(symbols.size());
  const auto later = [](const Candidate& a, const Candidate& b) { return a.rank != b.rank ? a.rank > b.rank : a.at > b.at; };
  heap_.clear();
  next_.resize(n);
  before_.resize(n);
  for (uint32_t i = 0; i < n; ++i) {
    next_[i] = i + 1 < n ? i + 1 : kEnd;
    before_[i] = i > 0 ? i - 1 : kEnd;
  }
  for (uint32_t i = 0; i < n; ++i) push(symbols, i);
  std::make_heap(heap_.begin(), heap_.end(), later);
  const auto add = [&](uint32_t at) {
    const size_t size = heap_.size();
    push(symbols, at);
    if (heap_.size() > size) std::push_heap(heap_.begin(), heap_.end(), later);
  };
  constexpr int32_t kGone = -2;  // a symbol that became part of its left neighbour
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Candidate c = heap_.back();
    heap_.pop_back();
    const uint32_t right = next_[c.at];
    // Neighbours may have changed since the candidate was made.
    if (symbols[c.at] != c.left || right == kEnd || symbols[right] != c.right) continue;
    symbols[c.at] = find(c.left, c.right).id;
    symbols[right] = kGone;
    next_[c.at] = next_[right];
    if (next_[right] != kEnd) before_[next_[right]] = c.at;
    add(c.at);
    if (before_[c.at] != kEnd) add(before_[c.at]);
  }
  size_t out = 0;
  for (uint32_t i = 0; i != kEnd; i = next_[i]) symbols[out++] = symbols[i];
  return out;
}

}  // namespace hlat::tokenizer
