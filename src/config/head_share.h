// Which attention heads a tensor-parallel rank computes.
// Query head h attends to kv head h / G with G = heads / kv_heads. With tp <= kv_heads the kv heads are shared out, and their
// query groups go with them. With tp > kv_heads every rank serves one kv head: consecutive groups of ranks hold the same kv head
// and split its G query heads. Groups differ by at most one rank and the smaller ones come first, so rank 0 has at least as many
// heads of either kind as any other rank: buffers sized on rank 0 fit all.
// On one rank every kv head has the same number of query heads: local query head j attends to local kv head
// j / (q.count / kv.count).
#pragma once

#include <cstdint>

#include "base/part.h"

namespace hlat {

struct HeadShare {
  Part q;         // global query heads
  Part kv;        // global kv heads they attend to
  Part kv_ranks;  // tp ranks that hold these kv heads, this one among them: more than one only when tp > kv_heads
  bool operator==(const HeadShare&) const = default;
};

// kv_heads divides heads, tp <= heads: no rank is left without a query head.
HeadShare share_heads(int64_t heads, int64_t kv_heads, int tp_rank, int tp);

}  // namespace hlat
