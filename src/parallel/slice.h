// Which part of a global tensor a rank holds: all of it, or along one dimension a list of parts, in local order.
// Sharding by tensor parallelism, optimizer shards and checkpoints speak in these terms. A rank's optimizer shard is a
// flat range of its local elements; flat_runs says which global elements lie in such a range.
#pragma once

#include <vector>

#include "ops/element_map.h"
#include "tensor/tensor.h"

namespace hlat {

// Rows or columns [local, local + count) here are [global, global + count) of the whole.
struct SlicePart {
  int64_t local = 0;
  int64_t global = 0;
  int64_t count = 0;
};

// Local elements [begin, end), all of one part, and where they lie in the global tensor. map counts from `begin`.
struct FlatRun {
  int64_t begin = 0, end = 0;
  ElementMap map;
};

struct Slice {
  Shape global;
  int dim = 0;
  std::vector<SlicePart> parts;

  static Slice whole(const Shape& global);
  // parts are given by global position; local positions follow from their order.
  static Slice of(const Shape& global, int dim, std::vector<SlicePart> parts);

  Shape local() const;
  // Local elements [begin, end) part by part, in order.
  std::vector<FlatRun> flat_runs(int64_t begin, int64_t end) const;
};

}  // namespace hlat
