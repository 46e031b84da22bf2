// The ops on a cache of keys and values: RoPE with the copy into the cache, and the choice of each segment's way in attention.
#include <cstring>
#include <vector>

#include "backend/cpu/cache_packed.h"
#include "backend/cpu/cache_scanned.h"

namespace hlat {

// One way is done before the other begins.
size_t CpuOps::cache_attention_scratch(int64_t /*tokens*/, int64_t segments, const CacheShape& s, DType dtype) const {
  const int64_t packed = packed_cache_floats(segments, s, kernels_, threads_.count(), elem(dtype));
  return static_cast<size_t>(std::max(packed, scanned_cache_floats(s, kernels_, threads_.count()))) * sizeof(float);
}

void CpuOps::do_cache_attention(Tensor out, Tensor qkv, Tensor cache, Tensor segments, const CacheShape& s, Tensor scratch) {
  HLAT_CHECK(s.head_dim <= kMaxHead, "head size {} is above {}", s.head_dim, kMaxHead);
  const CacheCall call{kernels_, threads_, out, qkv, cache, s, scratch.as<float>()};
  std::vector<const KvSegment*> many, few;
  for (int64_t i = 0; i < segments.dim(0); ++i) {
    const KvSegment& g = segments.as<KvSegment>()[i];
    check_segment(g, call);
    if (g.count > 0) (g.count > kFewQueries ? many : few).push_back(&g);
  }
  packed_cache_attention(call, many);
  scanned_cache_attention(call, few);
}

void CpuOps::do_cache_append(Tensor cache, Tensor qkv, Tensor table, Tensor positions, Tensor slots, const CacheShape& s) {
  const auto* position = positions.as<int32_t>();
  const auto* slot = slots.as<int32_t>();
  for (int64_t n = 0; n < qkv.dim(0); ++n)
    HLAT_CHECK(0 <= position[n] && position[n] < table.dim(0) && 0 <= slot[n] && slot[n] < cache.dim(0),
               "cache_append: token {} at position {} of {}, slot {} of {}", n, position[n], table.dim(0), slot[n], cache.dim(0));
  const auto stored = static_cast<size_t>(s.cache_width()) * size_of(cache.dtype);
  threads_.ranges(qkv.dim(0), row_grain(s.qkv_width()), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      kernels_.rope[elem(qkv.dtype)](at(qkv, n * s.qkv_width()), table.as<float>() + position[n] * s.head_dim, 0, 1, 1, s.qkv_width(),
                                     s.heads + s.kv_heads, s.head_dim, 1.0f);
      std::memcpy(at(cache, slot[n] * s.cache_width()), at(qkv, n * s.qkv_width() + s.heads * s.head_dim), stored);
    }
  });
}

}  // namespace hlat
