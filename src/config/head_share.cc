#include "config/head_share.h"

#include "base/error.h"

namespace hlat {

HeadShare share_heads(int64_t heads, int64_t kv_heads, int tp_rank, int tp) {
  HLAT_CHECK(kv_heads > 0 && heads > 0 && heads % kv_heads == 0, "heads = {}, kv_heads = {}", heads, kv_heads);
  HLAT_CHECK(tp_rank >= 0 && tp_rank < tp && tp <= heads, "tp rank {} of {} with {} heads", tp_rank, tp, heads);
  const int64_t group = heads / kv_heads;
  if (tp <= kv_heads) {
    const Part kv = part_of(kv_heads, tp_rank, tp);
    return {.q = {.begin = kv.begin * group, .count = kv.count * group}, .kv = kv, .kv_ranks = {.begin = tp_rank, .count = 1}};
  }
  // part_of puts larger shares first; counted from the end, ranks and kv heads get the smaller ones first.
  int64_t kv = 0;
  Part ranks;
  for (;; ++kv) {
    const Part mirrored = part_of(tp, kv_heads - 1 - kv, kv_heads);
    ranks = {.begin = tp - mirrored.end(), .count = mirrored.count};
    if (tp_rank < ranks.end()) break;
  }
  const Part q = part_of(group, tp_rank - ranks.begin, ranks.count);
  return {.q = {.begin = kv * group + q.begin, .count = q.count}, .kv = {.begin = kv, .count = 1}, .kv_ranks = ranks};
}

}  // namespace hlat
