// The started ranks against the layout: replicas found, and what is said when they do not fit.
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/resolve.h"

namespace hlat {
namespace {

Config layout(int64_t tp, int64_t pp, int64_t dp) {
  Config c;
  c.parallel = {.tp = tp, .pp = pp, .dp = dp};
  c.train.global_batch = 16;
  return c;
}

std::string refusal(const Config& config, int64_t ranks) {
  try {
    with_ranks(config, ranks);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

TEST(ConfigWithRanks, FindsTheReplicas) {
  EXPECT_EQ(with_ranks(Config{}, 1).parallel.dp, 1);
  EXPECT_EQ(with_ranks(layout(1, 1, 0), 8).parallel.dp, 8);
  const Config c = with_ranks(layout(4, 2, 0), 32);
  EXPECT_EQ(c.parallel.dp, 4);
  EXPECT_EQ(c.parallel.ranks(), 32);
  EXPECT_EQ(with_ranks(c, 32), c);
  EXPECT_EQ(layout(4, 2, 0).parallel.ranks(), 0);
}

TEST(ConfigWithRanks, SaysWhatDoesNotFit) {
  EXPECT_EQ(refusal(layout(4, 2, 4), 8),
            "parallel.tp (4) x parallel.pp (2) x parallel.dp (4) is 32 ranks, but 8 were started; set parallel.dp=auto to use as many "
            "replicas as fit");
  EXPECT_EQ(refusal(layout(4, 2, 4), 12),
            "parallel.tp (4) x parallel.pp (2) x parallel.dp (4) is 32 ranks, but 12 were started; start 32 ranks, or set parallel.dp=auto "
            "and a parallel.tp x parallel.pp that divides 12");
  EXPECT_EQ(refusal(layout(4, 2, 0), 12),
            "parallel.tp (4) x parallel.pp (2) is 8 ranks for each replica, but 12 were started; start a multiple of 8 ranks, or set "
            "parallel.dp=auto and a parallel.tp x parallel.pp that divides 12");
  EXPECT_EQ(refusal(layout(4, 1, 0), 1),
            "parallel.tp (4) x parallel.pp (1) is 4 ranks for each replica, but 1 was started; for one process set parallel.tp=1 "
            "parallel.pp=1 parallel.dp=auto");
  EXPECT_EQ(refusal(layout(1, 1, 2), 1),
            "parallel.tp (1) x parallel.pp (1) x parallel.dp (2) is 2 ranks, but 1 was started; set parallel.dp=auto to use as many "
            "replicas as fit");
}

TEST(ConfigWithRanks, ChecksTheBatchAgain) {
  EXPECT_EQ(refusal(layout(2, 1, 0), 6),
            "parallel.dp = 3 (auto, of 6 ranks): x train.micro_batch (1) is 3 sequences and must divide train.global_batch (16); "
            "parallel.dp 2 or 4, or train.global_batch 15 or 18, would fit");
  EXPECT_EQ(refusal(layout(1, 1, 3), 3),
            "parallel.dp = 3: x train.micro_batch (1) is 3 sequences and must divide train.global_batch (16); parallel.dp 2 or 4, or "
            "train.global_batch 15 or 18, would fit");
}

}  // namespace
}  // namespace hlat
