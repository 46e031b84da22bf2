#include "parallel/slice.h"

#include <algorithm>

namespace hlat {

Slice Slice::whole(const Shape& global) { return of(global, 0, {{.global = 0, .count = global[0]}}); }

Slice Slice::of(const Shape& global, int dim, std::vector<SlicePart> parts) {
  HLAT_CHECK(global.rank <= 2 && dim < global.rank, "dim {} of {}", dim, global.str());
  // Parts along columns interleave in memory; nothing needs more than one of them.
  HLAT_CHECK(dim == 0 || parts.size() == 1, "{} parts along dim {}", parts.size(), dim);
  int64_t local = 0;
  for (SlicePart& p : parts) {
    HLAT_CHECK(p.global >= 0 && p.count >= 0 && p.global + p.count <= global[dim], "part [{}, {}) of dim {} of {}", p.global,
               p.global + p.count, dim, global.str());
    p.local = local;
    local += p.count;
  }
  return {.global = global, .dim = dim, .parts = std::move(parts)};
}

Shape Slice::local() const {
  Shape s = global;
  s.dim[static_cast<size_t>(dim)] = parts.back().local + parts.back().count;
  return s;
}

std::vector<FlatRun> Slice::flat_runs(int64_t begin, int64_t end) const {
  const int64_t size = local().numel();
  HLAT_CHECK(0 <= begin && begin <= end && end <= size, "range [{}, {}) of {} elements", begin, end, size);
  std::vector<FlatRun> runs;
  if (dim == 1) {
    const SlicePart& p = parts.front();
    if (begin < end) runs.push_back({begin, end, {.first = p.global, .run = p.count, .stride = global[1], .offset = begin}});
    return runs;
  }
  const int64_t width = global.rank == 2 ? global[1] : 1;
  for (const SlicePart& p : parts) {
    const int64_t first = p.local * width, a = std::max(begin, first), b = std::min(end, first + p.count * width);
    if (a < b) runs.push_back({a, b, {.first = p.global * width, .offset = a - first}});
  }
  return runs;
}

}  // namespace hlat
