// Slots of prompts that share beginnings: each stretch once, for as long as a text needs it, whatever the size of the cache.
#include "eval/cached_prompts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "base/rng.h"
#include "support/token_lists.h"

namespace hlat {
namespace {

// A few-shot prompt with three questions, one of them asked four times, and two prompts that are alone.
std::vector<std::vector<int32_t>> some_prompts() {
  const std::vector<int32_t> shots = test::counted_tokens(40, 100);
  std::vector<std::vector<int32_t>> prompts;
  for (int i = 0; i < 4; ++i) prompts.push_back(test::joined(shots, test::counted_tokens(20, 300)));
  prompts.push_back(test::joined(shots, test::counted_tokens(5, 400)));
  prompts.push_back(test::joined(shots, test::counted_tokens(9, 500)));
  prompts.push_back(test::counted_tokens(30, 700));
  prompts.push_back({1});
  return prompts;
}

std::vector<int64_t> lengths_of(const std::vector<std::vector<int32_t>>& prompts, int64_t more) {
  std::vector<int64_t> lengths;
  for (const auto& p : prompts) lengths.push_back(static_cast<int64_t>(p.size()) + more);
  return lengths;
}

TEST(CachedPrompts, WhatPromptsShareHasTheSameSlotsAndIsThereOnce) {
  const auto prompts = some_prompts();
  const std::vector<PrefixTree::Text> texts(prompts.begin(), prompts.end());
  CachedPrompts cache(texts, lengths_of(prompts, 7), 1000);
  std::map<size_t, PlacedText> placed;
  for (const size_t t : cache.order()) placed[t] = *cache.place(t);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(placed[i].shared, placed[0].shared) << "samples of one prompt";
  EXPECT_EQ(placed[0].shared.back()->end, 59) << "all but the last token";
  EXPECT_EQ(placed[4].shared.front(), placed[0].shared.front()) << "the few-shot examples";
  EXPECT_EQ(placed[4].shared.back()->end, 40);
  EXPECT_TRUE(placed[6].shared.empty());
  EXPECT_TRUE(placed[7].shared.empty());
  for (size_t t = 0; t < prompts.size(); ++t) {
    EXPECT_LE(placed[t].runs.size(), static_cast<size_t>(kKeyRuns));
    EXPECT_EQ(placed[t].runs.back().end, static_cast<int32_t>(prompts[t].size()) + 7);
  }
}

// Rows of any number come and go; in each cache that holds one text all texts get their turn.
TEST(CachedPrompts, TextsThatAreThereAtTheSameTimeNeverShareOtherSlots) {
  const auto prompts = some_prompts();
  const std::vector<PrefixTree::Text> texts(prompts.begin(), prompts.end());
  RandomStream random({.seed = 9, .stream = hash_name("prompts"), .purpose = Noise::data});
  for (const int64_t slots : {67, 70, 75, 90, 120, 200, 1000}) {
    CachedPrompts cache(texts, lengths_of(prompts, 7), slots);
    std::deque<PlacedText> there;
    size_t next = 0, most = 0;
    while (next < prompts.size() || !there.empty()) {
      while (next < prompts.size()) {
        std::optional<PlacedText> placed = cache.place(cache.order()[next]);
        if (!placed) break;
        there.push_back(std::move(*placed));
        ++next;
      }
      ASSERT_FALSE(there.empty()) << "a text waits for ever in " << slots << " slots";
      most = std::max(most, there.size());
      std::map<int64_t, const void*> owner;  // of each slot
      for (const PlacedText& p : there)
        for (size_t r = 0; r < p.runs.size(); ++r) {
          const int64_t begin = r == 0 ? 0 : p.runs[r - 1].end;
          const void* who = r < p.shared.size() ? static_cast<const void*>(p.shared[r]) : &p;
          for (int64_t s = p.runs[r].slot; s < p.runs[r].slot + p.runs[r].end - begin; ++s) {
            ASSERT_LT(s, slots);
            ASSERT_EQ(owner.emplace(s, who).first->second, who) << "slot " << s << " of " << slots;
          }
        }
      const size_t ends = random.below(there.size());
      cache.give_back(there[ends]);
      there.erase(there.begin() + static_cast<std::ptrdiff_t>(ends));
    }
    EXPECT_TRUE(slots < 1000 || most == prompts.size());
  }
}

}  // namespace
}  // namespace hlat
