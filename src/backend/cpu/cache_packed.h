// Attention over a cache for segments of many queries, as in training: the keys and values of a segment are packed into tiles, which all
// its queries share.
#pragma once

#include <span>

#include "backend/cpu/cache_call.h"

namespace hlat {

void packed_cache_attention(const CacheCall& call, std::span<const KvSegment* const> segments);
int64_t packed_cache_floats(int64_t segments, const CacheShape& s, const CpuKernels& kernels, int threads, int type);  // of scratch

}  // namespace hlat
