// The mesh: ranks and coordinates, the groups along its axes, and which attention heads a tensor-parallel rank computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "comm/null_comm.h"
#include "parallel/mesh.h"

namespace hlat {
namespace {

TEST(MeshShape, RanksAndCoordinatesAreABijection) {
  for (int tp = 1; tp <= 16; ++tp)
    for (int pp = 1; tp * pp <= 16; ++pp)
      for (int dp = 1; tp * pp * dp <= 16; ++dp) {
        const MeshShape shape{.tp = tp, .pp = pp, .dp = dp};
        std::set<std::tuple<int, int, int>> seen;
        for (int rank = 0; rank < shape.ranks(); ++rank) {
          const MeshCoord c = coord_of(rank, shape);
          EXPECT_TRUE(0 <= c.tp && c.tp < tp && 0 <= c.pp && c.pp < pp && 0 <= c.dp && c.dp < dp);
          EXPECT_EQ(rank_of(c, shape), rank);
          seen.insert({c.pp, c.dp, c.tp});
        }
        EXPECT_EQ(seen.size(), static_cast<size_t>(shape.ranks()));
      }
}

TEST(MeshShape, TpIsInnermostAndPpOutermost) {
  const MeshShape shape{.tp = 2, .pp = 3, .dp = 4};
  EXPECT_EQ(rank_of({.tp = 1}, shape), 1);
  EXPECT_EQ(rank_of({.dp = 1}, shape), 2);
  EXPECT_EQ(rank_of({.pp = 1}, shape), 8);
  EXPECT_EQ(coord_of(23, shape), (MeshCoord{.tp = 1, .pp = 2, .dp = 3}));
}

TEST(MeshShape, RefusesWhatIsOutside) {
  const MeshShape shape{.tp = 2, .pp = 3, .dp = 4};
  EXPECT_THROW(coord_of(-1, shape), CheckFailed);
  EXPECT_THROW(coord_of(24, shape), CheckFailed);
  EXPECT_THROW(coord_of(0, MeshShape{.tp = 0}), CheckFailed);
  EXPECT_THROW(rank_of({.tp = 2}, shape), CheckFailed);
  EXPECT_THROW(rank_of({.pp = 3}, shape), CheckFailed);
  EXPECT_THROW(rank_of({.dp = -1}, shape), CheckFailed);
}

Mesh mesh_of(const MeshShape& shape, int rank, std::vector<AxisGroup>* groups = nullptr) {
  Config c;
  c.model = {.preset = {}, .heads = 8, .kv_heads = 2};
  c.parallel = {.tp = shape.tp, .pp = shape.pp, .dp = shape.dp};
  return {c, rank, [&](const AxisGroup& g) {
            if (groups != nullptr) groups->push_back(g);
            return std::make_unique<NullComm>(g.rank, g.size, g.name);
          }};
}

TEST(Mesh, KnowsTheRanksAlongEveryAxis) {
  const MeshShape shape{.tp = 3, .pp = 3, .dp = 2};
  const auto along = [&](Axis axis, const MeshCoord& at) { return mesh_of(shape, rank_of(at, shape)).ranks_along(axis); };
  EXPECT_EQ(along(Axis::tp, {.tp = 1, .dp = 1}), (std::vector{3, 4, 5}));
  EXPECT_EQ(along(Axis::dp, {.tp = 1, .pp = 1}), (std::vector{7, 10}));
  EXPECT_EQ(along(Axis::pp, {.tp = 2}), (std::vector{2, 8, 14}));
  EXPECT_EQ(along(Axis::kv, {.tp = 0, .dp = 1}), (std::vector{3}));  // two kv heads: the first tp rank has one alone
  EXPECT_EQ(along(Axis::kv, {.tp = 2, .dp = 1}), (std::vector{4, 5}));
  EXPECT_EQ(along(Axis::ends, {.tp = 2, .pp = 2}), (std::vector{2, 14}));
  EXPECT_EQ(along(Axis::ends, {.tp = 2, .pp = 1}), (std::vector{8}));
}

TEST(Mesh, OnlyPipelineGroupsCrossStages) {
  const Mesh mesh = mesh_of({.tp = 4, .pp = 3, .dp = 2}, 0), one = mesh_of({.tp = 4, .pp = 1, .dp = 2}, 0);
  for (const Axis axis : {Axis::tp, Axis::dp, Axis::kv}) EXPECT_FALSE(mesh.crosses_stages(axis)) << name_of(axis);
  for (const Axis axis : {Axis::pp, Axis::ends}) {
    EXPECT_TRUE(mesh.crosses_stages(axis)) << name_of(axis);
    EXPECT_FALSE(one.crosses_stages(axis)) << name_of(axis);
  }
}

// The members of a group come to the same list and color, each at its own place in it; other groups have other colors.
TEST(Mesh, GroupsAreTheSameForAllTheirRanks) {
  for (const MeshShape& shape :
       {MeshShape{.tp = 3, .pp = 4, .dp = 2}, MeshShape{.tp = 8, .pp = 1, .dp = 3}, MeshShape{.tp = 1, .pp = 2, .dp = 1}}) {
    std::map<std::pair<std::string, int>, std::vector<int>> ranks_of;  // by name and color
    for (int rank = 0; rank < shape.ranks(); ++rank) {
      std::vector<AxisGroup> groups;
      const Mesh mesh = mesh_of(shape, rank, &groups);
      ASSERT_EQ(groups.size(), static_cast<size_t>(kAxes));
      for (int a = 0; a < kAxes; ++a) {
        const std::vector<int>& ranks = mesh.ranks_along(static_cast<Axis>(a));
        const AxisGroup& g =
            *std::find_if(groups.begin(), groups.end(), [&](const AxisGroup& x) { return x.name == name_of(static_cast<Axis>(a)); });
        EXPECT_EQ(g.size, std::ssize(ranks));
        EXPECT_EQ(ranks.at(static_cast<size_t>(g.rank)), rank);
        EXPECT_EQ(ranks_of.try_emplace({g.name, g.color}, ranks).first->second, ranks) << g.name;
      }
    }
  }
}

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
