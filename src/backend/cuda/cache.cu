// The cache of keys and values: what a token adds to it, and attention over it.
// append is one pass: rotates the q and k heads of a token in place by its own position, and stores k, rotated and rounded, and v in the
// token's row of the cache.
#include "backend/cuda/attention/cache_attention.h"
#include "backend/cuda/attention/cache_segment.cuh"
#include "backend/cuda/device.cuh"

namespace hlat {

namespace {

struct Append {
  const float* table;  // (T, E): cosines, then sines
  const int32_t *positions, *slots;
  int heads, kv_heads, head_dim;
};

// A block is a stretch of one token's items: first the pairs of elements to rotate, N at a time, then the values to copy.
template <class T, int N>
__global__ void append_kernel(T* cache, T* qkv, Append x) {
  const int half = x.head_dim / 2, pieces = half / N, rotated = (x.heads + x.kv_heads) * pieces, copied = x.kv_heads * x.head_dim / N;
  const int item = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  if (item >= rotated + copied) return;
  T* from = qkv + blockIdx.x * (int64_t{x.heads} + 2 * x.kv_heads) * x.head_dim;
  T* to = cache + x.slots[blockIdx.x] * int64_t{2} * x.kv_heads * x.head_dim;
  if (item >= rotated) {
    const int64_t i = int64_t{item - rotated} * N, values = int64_t{x.kv_heads} * x.head_dim;
    Raw<T, N> v;
    v.load(from + x.heads * int64_t{x.head_dim} + values + i);
    v.store(to + values + i);
    return;
  }
  const int head = item / pieces, i = item % pieces * N;
  const float* cosine = x.table + x.positions[blockIdx.x] * int64_t{x.head_dim} + i;
  T* p = from + int64_t{head} * x.head_dim + i;
  float a[N], b[N], c[N], s[N];
  load(a, p);
  load(b, p + half);
  load(c, cosine);
  load(s, cosine + half);
  rotate(a, b, c, s, 1.0f);
  store(p, a);
  store(p + half, b);
  if (head < x.heads) return;
  T* k = to + int64_t{head - x.heads} * x.head_dim + i;
  store(k, a);
  store(k + half, b);
}

static_assert(CacheSegment::kInts == kKvSegment && kKeyRuns == 4 && offsetof(KvSegment, count) == 4 && offsetof(KvSegment, keys) == 8 &&
              offsetof(KvSegment, run_slot) == 16 && offsetof(KvSegment, run_end) == 32);

}  // namespace

void CudaOps::do_cache_append(Tensor cache, Tensor qkv, Tensor table, Tensor positions, Tensor slots, const CacheShape& s) {
  const Append x{.table = table.as<float>(),
                 .positions = positions.as<int32_t>(),
                 .slots = slots.as<int32_t>(),
                 .heads = static_cast<int>(s.heads),
                 .kv_heads = static_cast<int>(s.kv_heads),
                 .head_dim = static_cast<int>(s.head_dim)};
  with_type(qkv.dtype, [&](auto t) {
    using T = decltype(t);
    with_width<kVector<T>>(s.head_dim / 2 % kVector<T> == 0 && aligned({cache.data, qkv.data, table.data}), [&](auto n) {
      const int64_t items = ((s.heads + s.kv_heads) * (s.head_dim / 2) + s.kv_heads * s.head_dim) / n();
      const dim3 grid(static_cast<unsigned>(qkv.dim(0)), static_cast<unsigned>(ceil_div(items, kBlock)));
      launch(append_kernel<T, n()>, grid, kBlock, stream(), cache.as<T>(), qkv.as<T>(), x);
    });
  });
}

size_t CudaOps::cache_attention_scratch(int64_t tokens, int64_t /*segments*/, const CacheShape& s, DType /*dtype*/) const {
  return cache_attention_parts(tokens, s.heads, s.head_dim, s.max_queries, s.max_keys);
}

void CudaOps::do_cache_attention(Tensor out, Tensor qkv, Tensor cache, Tensor segments, const CacheShape& s, Tensor scratch) {
  HLAT_CHECK(qkv.dtype == DType::bf16 || qkv.dtype == DType::f32, "the CUDA backend has no {} kernels", name_of(qkv.dtype));
  if (s.head_dim > kCacheAttentionMaxHead)
    fail<UsageError>("attention on a GPU: head size {} is above {}", s.head_dim, kCacheAttentionMaxHead);
  HLAT_CUDA(run_cache_attention(stream(), {.tokens = qkv.dim(0),
                                           .segments = segments.dim(0),
                                           .heads = s.heads,
                                           .kv_heads = s.kv_heads,
                                           .head_dim = s.head_dim,
                                           .max_queries = s.max_queries,
                                           .max_keys = s.max_keys,
                                           .bf16 = qkv.dtype == DType::bf16,
                                           .qkv = qkv.data,
                                           .cache = cache.data,
                                           .out = out.data,
                                           .segment = segments.as<int32_t>(),
                                           .scratch = scratch.as<float>()}));
}

}  // namespace hlat
