// One call of cache_attention, for the two ways a segment can go: packed (many queries) or scanned (few). Which way follows from the
// segment alone, and neither way's result depends on the other segments or on the number of threads.
#pragma once

#include "backend/cpu/cpu_ops.h"

namespace hlat {

struct CacheCall {
  const CpuKernels& kernels;
  const Threads& threads;
  Tensor out, qkv, cache;
  const CacheShape& s;
  float* scratch;

  int type() const { return elem(qkv.dtype); }
  int64_t group() const { return s.heads / s.kv_heads; }
  float scale() const { return score_scale(s.head_dim); }
  std::byte* key_of(int64_t slot, int64_t kv) const { return at(cache, slot * s.cache_width() + kv * s.head_dim); }
  std::byte* value_of(int64_t slot, int64_t kv) const { return key_of(slot, s.kv_heads + kv); }
  std::byte* query_of(int64_t token, int64_t head) const { return at(qkv, token * s.qkv_width() + head * s.head_dim); }
  std::byte* out_of(int64_t token, int64_t head) const { return at(out, token * s.out_width() + head * s.head_dim); }
};

// A failed check where rows, keys or slots are not those of the tensors.
void check_segment(const KvSegment& g, const CacheCall& call);
// Slots of the keys [begin, end) of a segment.
void find_slots(int32_t* slots, const KvSegment& g, int64_t begin, int64_t end);

inline constexpr int64_t kFewQueries = 4;  // up to these a segment's keys are not worth packing

}  // namespace hlat
