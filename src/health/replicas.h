// Tensors that every rank of one group holds and that must be equal there bit by bit. Each rank takes a checksum of each
// of its tensors, the checksums are gathered, and the host compares: every rank of the group sees the same ones and comes
// to the same words. A group of one, or one without tensors, has nothing to compare and costs nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/device.h"
#include "parallel/mesh.h"
#include "param/param_store.h"

namespace hlat {

class Replicas {
 public:
  struct Item {
    ParamId param = -1;
    int64_t first_row = 0;  // rows from here on are shared
  };

  // Held by all ranks along the axis. Nothing is compared over a group of one.
  Replicas(const Mesh& mesh, Axis axis, const ParamStore& params, std::vector<Item> items, Region& io);

  const std::vector<Item>& items() const { return items_; }
  const std::string& axis() const { return comm_.name(); }
  // The rows of the item in a tensor of its parameter's shape: the weight or the gradient.
  static Tensor shared_rows(const Item& item, const Tensor& t) { return t.rows(item.first_row, t.dim(0)); }
  void take(Ops& ops, size_t item, const Tensor& rows) const;
  // After all were taken. Collective. Words on the first tensor that differs and who differs, nothing when all are equal.
  std::optional<std::string> difference(Device& device, const std::string& what) const;

 private:
  Comm& comm_;
  const std::vector<int>& ranks_;  // of the group, as ranks of the mesh
  const ParamStore& params_;
  std::vector<Item> items_;
  Tensor sums_;  // (group, items, 2) i32, flat
};

// "ranks 0, 1, 3 agree, rank 2 differs": fingerprints[i] is that of what ranks[i] holds; nothing when all are equal.
// Most decide; without a majority every set of equal ranks is named.
std::optional<std::string> describe_difference(const std::vector<uint64_t>& fingerprints, const std::vector<int>& ranks);

}  // namespace hlat
