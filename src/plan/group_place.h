// Where the groups of a mesh lie on nodes. Ranks are numbered pp, dp, tp with tp innermost, and consecutive ranks share a node. All groups
// of an axis work at the same time, so those that leave a node share its network.
#pragma once

#include <array>
#include <vector>

#include "parallel/mesh.h"

namespace hlat {

struct GroupPlace {
  int size = 1;      // ranks of the group
  int nodes = 1;     // that it lies on
  int per_node = 1;  // its ranks on a node, the most
  int sharing = 1;   // groups of this axis that leave one node, the most: they share its network
  bool operator==(const GroupPlace&) const = default;
};

// Of the group along the axis that has the most to pay: on the most nodes, then the most ranks. ranks_per_node 0: all are on one node.
// kv_ranks: tp ranks that share a kv head.
GroupPlace place_group(const MeshShape& shape, Axis axis, int ranks_per_node, int kv_ranks = 1);

// Ranks of a node whose neighbour in the pipeline is on another node, the most; 0: all are on one.
int crossing_messages(const MeshShape& shape, int ranks_per_node);

}  // namespace hlat
