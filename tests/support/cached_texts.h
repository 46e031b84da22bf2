// Texts whose keys lie in a cache, for tests of the ops on it: where their runs go and which segments describe them. Runs are laid out
// last first with a slot between them that belongs to nobody.
#pragma once

#include <vector>

#include "ops/ops.h"

namespace hlat {

struct CachedText {
  int64_t queries;            // tokens computed now: its last ones
  std::vector<int64_t> runs;  // keys in each, in all those of the text
  int64_t idle = 0;           // rows of no segment before its tokens
  int shares = -1;            // the earlier text whose first run is its own first run too
  int64_t room = 0;           // slots its last run has beyond its keys
};

struct CachedTexts {
  std::vector<KvSegment> segments;
  int64_t tokens = 0, slots = 0;

  explicit CachedTexts(const std::vector<CachedText>& texts) {
    slots = 1;
    for (const CachedText& t : texts) {
      KvSegment& g = segments.emplace_back();
      tokens += t.idle;
      g.first = static_cast<int32_t>(tokens);
      g.count = static_cast<int32_t>(t.queries);
      tokens += t.queries;
      for (const int64_t n : t.runs) g.keys += static_cast<int32_t>(n);
      place_runs(g, t);
    }
  }

  static int64_t slot(const KvSegment& g, int64_t key) {
    size_t r = 0;
    while (key >= g.run_end.at(r)) ++r;
    return g.run_slot[r] + key - (r > 0 ? g.run_end[r - 1] : 0);
  }

  // Of these segments, or of one alone.
  CacheShape shape(int64_t heads, int64_t kv_heads, int64_t head_dim) const { return shape_of(segments, heads, kv_heads, head_dim); }
  static CacheShape shape_of(const std::vector<KvSegment>& segments, int64_t heads, int64_t kv_heads, int64_t head_dim) {
    CacheShape s{.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim};
    for (const KvSegment& g : segments) {
      s.max_queries = std::max<int64_t>(s.max_queries, g.count);
      s.max_keys = std::max<int64_t>(s.max_keys, g.keys);
      for (int64_t i = 0; i < g.count; ++i) s.pairs += static_cast<double>(g.keys - g.count + i + 1);
    }
    return s;
  }

 private:
  void place_runs(KvSegment& g, const CachedText& t) {
    for (size_t r = t.runs.size(); r-- > 0;) {
      const bool shared = r == 0 && t.shares >= 0;
      g.run_slot.at(r) = shared ? segments[static_cast<size_t>(t.shares)].run_slot[0] : static_cast<int32_t>(slots);
      if (!shared) slots += t.runs[r] + (r + 1 == t.runs.size() ? t.room : 0) + 1;
    }
    int64_t end = 0;
    for (size_t r = 0; r < g.run_end.size(); ++r) {
      if (r < t.runs.size()) end += t.runs[r] + (r + 1 == t.runs.size() ? t.room : 0);
      g.run_end[r] = static_cast<int32_t>(end);
    }
  }
};

}  // namespace hlat
