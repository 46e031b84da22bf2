// Attention over a cache for segments of few queries: keys and values are read where they lie, in parts of fixed length whose sums are
// merged in order.
#pragma once

#include <span>

#include "backend/cpu/cache_call.h"

namespace hlat {

void scanned_cache_attention(const CacheCall& call, std::span<const KvSegment* const> segments);
int64_t scanned_cache_floats(const CacheShape& s, const CpuKernels& kernels, int threads);  // of scratch

}  // namespace hlat
