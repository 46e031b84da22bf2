// The front of the ops on a cache of keys and values, and of the choice of the likeliest token: contract checks and counting.
// The contents of segments, positions and slots lie on the device and are the caller's word.
#include "ops/contract.h"

namespace hlat {

namespace {

void check_cache(const char* op, const Tensor& cache, const Tensor& qkv, const CacheShape& s) {
  HLAT_CHECK(s.heads > 0 && s.kv_heads > 0 && s.head_dim > 0 && s.head_dim % 2 == 0 && s.heads % s.kv_heads == 0,
             "{}: heads {}, kv_heads {}, head_dim {}", op, s.heads, s.kv_heads, s.head_dim);
  check_matrix({op, "qkv"}, qkv);
  check_shape({op, "qkv"}, qkv, {qkv.dim(0), s.qkv_width()});
  check_matrix({op, "cache"}, cache);
  check({op, "cache"}, cache, {cache.dim(0), s.cache_width()}, qkv.dtype);
}

}  // namespace

void Ops::cache_append(Tensor cache, Tensor qkv, Tensor table, Tensor positions, Tensor slots, const CacheShape& s) {
  check_cache("cache_append", cache, qkv, s);
  check_matrix({"cache_append", "table"}, table);
  check({"cache_append", "table"}, table, {table.dim(0), s.head_dim}, stat_type(qkv.dtype));
  check({"cache_append", "positions"}, positions, {qkv.dim(0)}, DType::i32);
  check({"cache_append", "slots"}, slots, {qkv.dim(0)}, DType::i32);
  const double rotated = static_cast<double>(qkv.dim(0) * (s.heads + s.kv_heads) * s.head_dim);
  const double stored = static_cast<double>(qkv.dim(0) * s.cache_width());
  const Timed timed = count(OpKind::cache_append, 3 * rotated, (2 * rotated + 2 * stored) * static_cast<double>(size_of(qkv.dtype)));
  if (qkv.dim(0) > 0) do_cache_append(cache, qkv, table, positions, slots, s);
}

void Ops::cache_attention(Tensor out, Tensor qkv, Tensor cache, Tensor segments, const CacheShape& s) {
  check_cache("cache_attention", cache, qkv, s);
  check({"cache_attention", "out"}, out, {qkv.dim(0), s.out_width()}, qkv.dtype);
  HLAT_CHECK(segments.rank() == 2, "cache_attention: segments is {}", segments.str());
  check({"cache_attention", "segments"}, segments, {segments.dim(0), kKvSegment}, DType::i32);
  HLAT_CHECK(s.max_queries >= 0 && s.max_keys >= s.max_queries, "cache_attention: {} queries, {} keys", s.max_queries, s.max_keys);
  HLAT_CHECK(!same_data(out, qkv), "cache_attention: out {} is qkv", out.str());
  const double keys = s.max_queries == 0 ? 0 : s.pairs / static_cast<double>(s.max_queries);
  const Timed timed = count(OpKind::cache_attention, 4 * static_cast<double>(s.head_dim * s.heads) * s.pairs,
                            2 * bytes_of({out}) + keys * static_cast<double>(s.cache_width()) * static_cast<double>(size_of(qkv.dtype)));
  if (qkv.dim(0) == 0 || segments.dim(0) == 0) return;
  const Scope scope(temp_);
  do_cache_attention(out, qkv, cache, segments, s,
                     scratch(cache_attention_scratch(qkv.dim(0), segments.dim(0), s, qkv.dtype), OpKind::cache_attention));
}

void Ops::argmax(Tensor ids, Tensor values, Tensor logits, int64_t first) {
  check_matrix({"argmax", "logits"}, logits);
  check({"argmax", "ids"}, ids, {logits.dim(0)}, DType::i32);
  check({"argmax", "values"}, values, {logits.dim(0)}, stat_type(logits.dtype));
  HLAT_CHECK(first >= 0 && (logits.dim(1) > 0 || logits.dim(0) == 0), "argmax: first {}, logits {}", first, logits.str());
  const Timed timed = count(OpKind::argmax, numel(logits), bytes_of({ids, values, logits}));
  if (logits.dim(0) > 0) do_argmax(ids, values, logits, first);
}

}  // namespace hlat
