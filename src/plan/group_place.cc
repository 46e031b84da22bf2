#include "plan/group_place.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/ceil_div.h"
#include "base/error.h"

namespace hlat {
namespace {

// The number of a rank's group along an axis; ranks of one group have the same.
int group_number(int rank, const MeshShape& s, Axis axis, int kv_ranks) {
  const MeshCoord c = coord_of(rank, s);
  switch (axis) {
    case Axis::tp: return c.pp * s.dp + c.dp;
    case Axis::dp: return c.pp * s.tp + c.tp;
    case Axis::pp:
    case Axis::ends: return c.dp * s.tp + c.tp;
    case Axis::kv: return (c.pp * s.dp + c.dp) * s.tp + c.tp / kv_ranks;
  }
  return 0;
}

struct OnNodes {
  int size = 0;
  std::map<int, int> ranks;  // by node
};

}  // namespace

GroupPlace place_group(const MeshShape& shape, Axis axis, int ranks_per_node, int kv_ranks) {
  HLAT_CHECK(kv_ranks >= 1 && ranks_per_node >= 0, "{} kv ranks, {} ranks per node", kv_ranks, ranks_per_node);
  const int per_node = ranks_per_node == 0 ? shape.ranks() : ranks_per_node;
  std::map<int, OnNodes> groups;
  for (int rank = 0; rank < shape.ranks(); ++rank) {
    const int stage = coord_of(rank, shape).pp;
    if (axis == Axis::ends && stage != 0 && stage != shape.pp - 1) continue;
    OnNodes& g = groups[group_number(rank, shape, axis, kv_ranks)];
    ++g.size;
    ++g.ranks[rank / per_node];
  }
  std::map<int, int> leaving;  // groups by node
  for (const auto& [number, g] : groups)
    for (const auto& [node, ranks] : g.ranks) leaving[node] += g.ranks.size() > 1 ? 1 : 0;
  GroupPlace worst;
  const auto cost = [](const GroupPlace& p) { return std::tuple(p.nodes, p.size, p.sharing, p.per_node); };
  for (const auto& [number, g] : groups) {
    GroupPlace p{.size = g.size, .nodes = static_cast<int>(g.ranks.size())};
    for (const auto& [node, ranks] : g.ranks) {
      p.per_node = std::max(p.per_node, ranks);
      p.sharing = std::max(p.sharing, leaving[node]);
    }
    worst = std::max(worst, p, [&](const GroupPlace& a, const GroupPlace& b) { return cost(a) < cost(b); });
  }
  return worst;
}

int crossing_messages(const MeshShape& shape, int ranks_per_node) {
  const int per_node = ranks_per_node == 0 ? shape.ranks() : ranks_per_node;
  const int stage = shape.tp * shape.dp;
  std::map<int, int> crossing;  // by node
  for (int rank = 0; rank < shape.ranks() && shape.pp > 1; ++rank)
    if ((rank + stage) % shape.ranks() / per_node != rank / per_node) ++crossing[rank / per_node];
  int most = 0;
  for (const auto& [node, ranks] : crossing) most = std::max(most, ranks);
  return most;
}

}  // namespace hlat
