#include "eval/cached_prompts.h"

#include <algorithm>

#include "base/error.h"

namespace hlat {

namespace {

// What prompts may share: the last token of each is its own, because what follows is asked of it.
std::vector<PrefixTree::Text> without_last_token(std::span<const PrefixTree::Text> prompts) {
  std::vector<PrefixTree::Text> texts;
  for (const PrefixTree::Text& prompt : prompts) texts.push_back(prompt.first(prompt.size() - 1));
  return texts;
}

}  // namespace

CachedPrompts::CachedPrompts(std::span<const PrefixTree::Text> prompts, std::vector<int64_t> lengths, int64_t slots)
    : lengths_(std::move(lengths)), slots_(slots), shared_(prompts.size()) {
  const std::vector<PrefixTree::Text> texts = without_last_token(prompts);
  order_ = lexicographic_order(texts);
  const PrefixTree tree(texts, kKeyRuns - 1);  // a text has one run of its own
  for (const Stretch& s : tree.stretches()) stretches_.push_back({.begin = s.begin, .end = s.end, .read = s.begin});
  const auto each_stretch = [&](size_t text, const auto& body) {
    for (int32_t s = tree.leaf(text); s >= 0; s = tree.stretches()[static_cast<size_t>(s)].parent) body(stretches_[static_cast<size_t>(s)]);
  };
  for (size_t t = 0; t < texts.size(); ++t) each_stretch(t, [](SharedStretch& s) { ++s.texts; });
  for (size_t t = 0; t < texts.size(); ++t) {
    each_stretch(t, [&](SharedStretch& s) {
      if (s.texts > 1) shared_[t].push_back(&s);
    });
    std::reverse(shared_[t].begin(), shared_[t].end());
  }
}

void CachedPrompts::drop(SharedStretch& s) {
  if (s.slot >= 0) slots_.give_back(s.slot, s.end - s.begin);
  s.slot = -1;
  s.read = s.begin;
}

bool CachedPrompts::place_shared(const std::vector<SharedStretch*>& path) {
  for (SharedStretch* s : path) {
    if (s->slot >= 0) continue;
    const std::optional<int64_t> slot = slots_.take(s->end - s->begin);
    if (!slot) return false;
    s->slot = *slot;
  }
  return true;
}

std::optional<PlacedText> CachedPrompts::place(size_t text) {
  const std::vector<SharedStretch*>& path = shared_[text];
  PlacedText placed{.shared = path};
  placed.own_begin = path.empty() ? 0 : path.back()->end;
  placed.own_slots = lengths_[text] - placed.own_begin;
  std::optional<int64_t> own = place_shared(path) ? slots_.take(placed.own_slots) : std::nullopt;
  if (!own && placed_ == 0) {
    // What is kept for texts that wait lies in the way. In an empty cache one text has room, its stretches one behind the other.
    for (SharedStretch& s : stretches_) drop(s);
    own = place_shared(path) ? slots_.take(placed.own_slots) : std::nullopt;
    HLAT_CHECK(own, "a text of {} tokens has no room in an empty cache", lengths_[text]);
  }
  if (!own) return std::nullopt;
  ++placed_;
  for (const SharedStretch* s : path) placed.runs.push_back({static_cast<int32_t>(s->slot), static_cast<int32_t>(s->end)});
  placed.runs.push_back({static_cast<int32_t>(*own), static_cast<int32_t>(lengths_[text])});
  return placed;
}

void CachedPrompts::give_back(const PlacedText& placed) {
  --placed_;
  slots_.give_back(placed.runs.back().slot, placed.own_slots);
  for (SharedStretch* s : placed.shared)
    if (--s->texts == 0) drop(*s);
}

}  // namespace hlat
