// The mesh: ranks and coordinates, and the groups along its axes.
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

}  // namespace
}  // namespace hlat
