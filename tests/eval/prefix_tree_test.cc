// Texts as a tree of stretches: whatever is shared, every text is the stretches on its path.
#include "eval/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/rng.h"
#include "support/token_lists.h"

namespace hlat {
namespace {

using Texts = std::vector<std::vector<int32_t>>;

std::vector<PrefixTree::Text> views(const Texts& texts) { return {texts.begin(), texts.end()}; }

// Each text from its path; fails the test where a stretch is not where it should be.
void expect_texts(const Texts& texts, const PrefixTree& tree, int levels) {
  const std::vector<Stretch>& all = tree.stretches();
  for (size_t s = 0; s < all.size(); ++s) {
    EXPECT_LT(all[s].parent, static_cast<int32_t>(s)) << "a parent comes first";
    EXPECT_LT(all[s].level, levels);
    EXPECT_LT(all[s].begin, all[s].end);
    // Depth first: the parent is the one before, or an ancestor of that.
    if (all[s].parent < 0) continue;
    auto before = static_cast<int32_t>(s) - 1;
    while (before >= 0 && before != all[s].parent) before = all[static_cast<size_t>(before)].parent;
    EXPECT_EQ(before, all[s].parent);
  }
  for (size_t t = 0; t < texts.size(); ++t) {
    auto end = static_cast<int64_t>(texts[t].size());
    for (int32_t s = tree.leaf(t); s >= 0; s = all[static_cast<size_t>(s)].parent) {
      const Stretch& stretch = all[static_cast<size_t>(s)];
      ASSERT_EQ(stretch.end, end);
      const std::vector<int32_t>& of = texts[stretch.text];
      ASSERT_TRUE(std::equal(of.begin() + stretch.begin, of.begin() + stretch.end, texts[t].begin() + stretch.begin));
      end = stretch.begin;
    }
    ASSERT_EQ(end, 0);
  }
}

int64_t computed(const PrefixTree& tree) {
  int64_t sum = 0;
  for (const Stretch& s : tree.stretches()) sum += s.end - s.begin;
  return sum;
}

TEST(PrefixTree, AFewShotPromptAndAQuestionAreComputedOnce) {
  const std::vector<int32_t> shots = test::counted_tokens(100, 0), question = test::joined(shots, test::counted_tokens(30, 1000)),
                             other = test::joined(shots, test::counted_tokens(40, 2000));
  Texts texts;
  for (int32_t choice = 0; choice < 4; ++choice) texts.push_back(test::joined(question, test::counted_tokens(5, 10000 + 100 * choice)));
  for (int32_t choice = 0; choice < 4; ++choice) texts.push_back(test::joined(other, test::counted_tokens(6, 20000 + 100 * choice)));
  const std::vector<PrefixTree::Text> v = views(texts);
  const PrefixTree tree(v, 4);
  expect_texts(texts, tree, 4);
  EXPECT_EQ(computed(tree), 100 + 30 + 4 * 5 + 40 + 4 * 6);
}

TEST(PrefixTree, EqualTextsAreOneStretchAndShortAccidentsAreNone) {
  const Texts equal = {test::counted_tokens(3, 5), test::counted_tokens(3, 5), test::counted_tokens(3, 5)},
              accident = {{1, 2, 3}, {1, 2, 4}};
  const std::vector<PrefixTree::Text> v = views(equal), w = views(accident);
  const PrefixTree one(v, 4), two(w, 4);
  expect_texts(equal, one, 4);
  expect_texts(accident, two, 4);
  EXPECT_EQ(one.stretches().size(), 1u);
  EXPECT_EQ(two.stretches().size(), 2u);
}

TEST(PrefixTree, AnyTextsInAnyOrderAndDepth) {
  RandomStream random({.seed = 3, .stream = hash_name("texts"), .purpose = Noise::data});
  for (int round = 0; round < 200; ++round) {
    Texts texts;
    const auto count = 1 + random.below(40);
    for (uint64_t t = 0; t < count; ++t) {
      // Cut from a few long ones, so that beginnings of all lengths are shared.
      std::vector<int32_t> text = test::counted_tokens(static_cast<int64_t>(random.below(60)), static_cast<int32_t>(100 * random.below(3)));
      const auto more = random.below(30);
      for (uint64_t i = 0; i < more; ++i) text.push_back(static_cast<int32_t>(random.below(2)));
      texts.push_back(text);
    }
    for (const int levels : {1, 2, 3, 4}) {
      const std::vector<PrefixTree::Text> v = views(texts);
      expect_texts(texts, PrefixTree(v, levels), levels);
    }
  }
}

}  // namespace
}  // namespace hlat
