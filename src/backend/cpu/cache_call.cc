#include "backend/cpu/cache_call.h"

namespace hlat {

void check_segment(const KvSegment& g, const CacheCall& call) {
  const CacheShape& s = call.s;
  const int64_t tokens = call.qkv.dim(0), slots = call.cache.dim(0);
  HLAT_CHECK(
      0 <= g.first && 0 <= g.count && g.first + g.count <= tokens && g.count <= s.max_queries && g.count <= g.keys && g.keys <= s.max_keys,
      "cache_attention: rows {} + {} of {} (at most {}), {} keys (at most {})", g.first, g.count, tokens, s.max_queries, g.keys,
      s.max_keys);
  int64_t begin = 0;
  for (size_t r = 0; r < kKeyRuns; ++r) {
    const int64_t end = std::min(g.run_end[r], g.keys);
    HLAT_CHECK(end >= begin && (end == begin || (0 <= g.run_slot[r] && g.run_slot[r] + end - begin <= slots)),
               "cache_attention: run {} has keys {} to {} from slot {} of {} on", r, begin, end, g.run_slot[r], slots);
    begin = end;
  }
  HLAT_CHECK(begin == g.keys, "cache_attention: the runs hold {} of {} keys", begin, g.keys);
}

void find_slots(int32_t* slots, const KvSegment& g, int64_t begin, int64_t end) {
  int64_t run_begin = 0;
  for (size_t r = 0; r < kKeyRuns; ++r) {
    const int64_t run_end = g.run_end[r];
    for (int64_t j = std::max(begin, run_begin); j < std::min(end, run_end); ++j)
      slots[j - begin] = static_cast<int32_t>(g.run_slot[r] + j - run_begin);
    run_begin = run_end;
  }
}

}  // namespace hlat
