// Heads on tensor-parallel ranks: every query head on one of them, with its kv head.
#include "config/head_share.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/error.h"

namespace hlat {
namespace {

// One rank's share against the rules that need no other rank.
void expect_consistent(const HeadShare& s, int64_t group, int rank, const HeadShare& first) {
  ASSERT_GE(s.q.count, 1);
  ASSERT_GE(s.kv.count, 1);
  ASSERT_EQ(s.q.count % s.kv.count, 0);
  const int64_t local_group = s.q.count / s.kv.count;
  for (int64_t j = 0; j < s.q.count; ++j) EXPECT_EQ((s.q.begin + j) / group, s.kv.begin + j / local_group);
  EXPECT_TRUE(s.kv_ranks.begin <= rank && rank < s.kv_ranks.end());
  EXPECT_GE(first.q.count, s.q.count);
  EXPECT_GE(first.kv.count, s.kv.count);
}

void expect_shared_out(int64_t heads, int64_t kv_heads, int tp) {
  SCOPED_TRACE(fmt::format("heads {} kv_heads {} tp {}", heads, kv_heads, tp));
  std::vector<HeadShare> shares;
  for (int rank = 0; rank < tp; ++rank) shares.push_back(share_heads(heads, kv_heads, rank, tp));
  std::vector<std::set<int>> holders(static_cast<size_t>(kv_heads));
  int64_t next = 0;  // the first query head no rank has yet: consecutive shares leave none out and take none twice
  for (int rank = 0; rank < tp; ++rank) {
    const HeadShare& s = shares[static_cast<size_t>(rank)];
    expect_consistent(s, heads / kv_heads, rank, shares[0]);
    EXPECT_EQ(s.q.begin, next);
    next = s.q.end();
    for (int64_t k = s.kv.begin; k < s.kv.end(); ++k) holders[static_cast<size_t>(k)].insert(rank);
  }
  EXPECT_EQ(next, heads);
  int64_t next_kv = 0;
  for (int rank = 0; rank < tp; ++rank) {
    const HeadShare& s = shares[static_cast<size_t>(rank)];
    std::set<int> ranks;
    for (int64_t r = s.kv_ranks.begin; r < s.kv_ranks.end(); ++r) ranks.insert(static_cast<int>(r));
    for (int64_t k = s.kv.begin; k < s.kv.end(); ++k) EXPECT_EQ(holders[static_cast<size_t>(k)], ranks);
    EXPECT_TRUE(tp > kv_heads || s.kv_ranks == (Part{.begin = rank, .count = 1}));
    if (s.kv_ranks.begin == rank) {  // each kv head in one group of ranks
      EXPECT_EQ(s.kv.begin, next_kv);
      next_kv = s.kv.end();
    }
  }
  EXPECT_EQ(next_kv, kv_heads);
}

TEST(HeadSplit, SharesOutEveryHeadOnce) {
  for (int64_t heads = 1; heads <= 16; ++heads)
    for (int64_t kv_heads = 1; kv_heads <= heads; ++kv_heads)
      for (int tp = 1; heads % kv_heads == 0 && tp <= heads; ++tp) expect_shared_out(heads, kv_heads, tp);
}

TEST(HeadSplit, KnownShares) {
  // HLAT-70B's shape on 32 ranks: each of 8 kv heads on four of them.
  EXPECT_EQ(share_heads(64, 8, 5, 32), (HeadShare{.q = {10, 2}, .kv = {1, 1}, .kv_ranks = {4, 4}}));
  // Uneven kv heads: whole groups move.
  EXPECT_EQ(share_heads(12, 3, 0, 2), (HeadShare{.q = {0, 8}, .kv = {0, 2}, .kv_ranks = {0, 1}}));
  EXPECT_EQ(share_heads(12, 3, 1, 2), (HeadShare{.q = {8, 4}, .kv = {2, 1}, .kv_ranks = {1, 1}}));
  // Three ranks for two kv heads: the group of one comes first.
  EXPECT_EQ(share_heads(8, 2, 0, 3), (HeadShare{.q = {0, 4}, .kv = {0, 1}, .kv_ranks = {0, 1}}));
  EXPECT_EQ(share_heads(8, 2, 1, 3), (HeadShare{.q = {4, 2}, .kv = {1, 1}, .kv_ranks = {1, 2}}));
  EXPECT_EQ(share_heads(8, 2, 2, 3), (HeadShare{.q = {6, 2}, .kv = {1, 1}, .kv_ranks = {1, 2}}));
}

TEST(HeadSplit, RefusesBrokenContracts) {
  EXPECT_THROW(share_heads(4, 4, 0, 5), CheckFailed);
  EXPECT_THROW(share_heads(4, 3, 0, 1), CheckFailed);
  EXPECT_THROW(share_heads(4, 2, 2, 2), CheckFailed);
  EXPECT_THROW(share_heads(4, 0, 0, 1), CheckFailed);
}

}  // namespace
}  // namespace hlat
