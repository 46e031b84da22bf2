// The search: short steps stand for whole ones, the winner beats every layout that fits, and what loses says why.
#include "plan/search.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/load.h"
#include "plan/step_shapes.h"

namespace hlat::test {
namespace {

TEST(TimedPlan, AShortStepStandsForTheWhole) {
  TestClock clock;
  clock.byte_s = 1e-10;
  clock.latency = 2e-6;
  clock.bandwidth = 5e8;
  for (const auto& [tp, pp, dp, micros, chunks] :
       {std::tuple{1, 1, 2, 24, 1}, {2, 2, 2, 16, 1}, {1, 4, 1, 30, 1}, {1, 2, 1, 17, 2}, {1, 4, 2, 32, 2}}) {
    const Config c = small_step(tp, pp, dp, micros, chunks);
    const TimedPlan quick = time_plan(c, {}, clock), whole = time_plan(c, {}, clock, Play::whole);
    EXPECT_LT(quick.played, quick.micros);
    EXPECT_EQ(whole.played, micros);
    EXPECT_NEAR(quick.time.seconds, whole.time.seconds, 1e-3 * whole.time.seconds) << "pp " << pp << ", chunks " << chunks;
    for (size_t s = 0; s < whole.stages.size(); ++s) {
      EXPECT_EQ(quick.stages[s].memory.total(), whole.stages[s].memory.total()) << "stage " << s;
      EXPECT_NEAR(quick.time.stages[s].computed(), whole.time.stages[s].computed(), 1e-9 * whole.time.seconds);
    }
    EXPECT_NEAR(quick.tokens_per_s(), whole.tokens_per_s(), 1e-3 * whole.tokens_per_s());
  }
}

SearchTarget target_of(int64_t ranks, double memory, double bandwidth = 1e10) {
  SearchTarget t;
  t.limits.ranks = ranks;
  t.fit = {.device = "test", .available = memory};
  t.threads = 2;
  t.clock = [bandwidth](const Config&) {
    auto clock = std::make_unique<TestClock>();
    clock->bandwidth = bandwidth;
    clock->latency = 1e-6;
    return clock;
  };
  return t;
}

TEST(Search, TheWinnerIsTheFastestOfAllThatFit) {
  Config config = small_step(1, 1, 8, 4);
  const SearchTarget target = target_of(8, 3e6);
  const SearchResult found = search_layouts(config, target);
  ASSERT_FALSE(found.best.empty());
  EXPECT_EQ(found.best.size(), 10u);
  for (size_t i = 0; i < found.best.size(); ++i) {
    EXPECT_TRUE(found.best[i].fits);
    EXPECT_LE(found.best[i].needed, 3e6);
    EXPECT_EQ(found.best[i].config.parallel.ranks(), 8);
    if (i > 0) {
      EXPECT_GE(found.best[i].seconds(), found.best[i - 1].seconds());
    }
  }
  // By hand: every split with every policy and micro-batch.
  for (const LayoutFamily& f : layout_families(config, target.limits))
    for (const Recompute& r : f.recomputes)
      for (const int64_t micro : f.micro_batches) {
        Config c = f.config;
        c.train.recompute = r;
        c.train.micro_batch = micro;
        const ScoredLayout s = score_layout(c, target);
        if (s.fits) {
          EXPECT_GE(s.seconds(), found.best.front().seconds()) << layout_words(c);
        }
      }
  for (const RejectedLayout& n : found.neighbours) {
    EXPECT_FALSE(n.why.empty());
    if (n.fits) {
      EXPECT_GE(n.seconds, found.best.front().seconds()) << n.words;
    }
    if (!n.fits) {
      EXPECT_NE(n.why.find("needs"), std::string::npos) << n.why;
    }
  }
  EXPECT_GT(found.neighbours.size(), 5u);
}

// With slow links splits that talk less win.
TEST(Search, SlowLinksMoveTheChoice) {
  const Config config = small_step(1, 1, 8, 4);
  const SearchResult fast = search_layouts(config, target_of(8, 1e9, 1e12)), slow = search_layouts(config, target_of(8, 1e9, 1e7));
  EXPECT_EQ(slow.best.front().config.parallel.tp, 1);
  EXPECT_GT(slow.best.front().seconds(), fast.best.front().seconds());
}

TEST(Search, NothingThatFitsNamesTheSmallest) {
  const SearchResult found = search_layouts(small_step(1, 1, 8, 4), target_of(8, 1e5));
  EXPECT_TRUE(found.best.empty());
  EXPECT_GT(found.smallest.needed, 1e5);
  EXPECT_EQ(found.layouts, found.too_large);
}

TEST(Search, RanksThatCannotBeSplitNameTheNearest) {
  Config config = small_step(1, 1, 1, 4);
  config.model.layers = 7;
  try {
    search_layouts(config, target_of(11, 1e9));
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("11 ranks cannot be split"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("ranks can"), std::string::npos) << e.what();
  }
}

TEST(LayoutSpace, KeysMakeTheLayoutAgain) {
  const Config config = small_step(2, 2, 2, 4);
  for (const LayoutChange& change : neighbours(config, {.ranks = 8})) {
    EXPECT_EQ(change.config.parallel.ranks(), 8) << change.words;
    EXPECT_FALSE(change.config == config);
    EXPECT_EQ(override_config(config, layout_keys(change.config)).config, change.config) << change.words;
  }
}

}  // namespace
}  // namespace hlat::test
