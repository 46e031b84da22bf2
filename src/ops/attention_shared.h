// Sizes of the cuda backend's attention kernels, for them and for who decides whether they can run. Plain types: both compilers read this.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hlat {

inline constexpr int64_t kOwnAttentionMaxHead = 256;

// Of a call over a cache in which every text has few queries: up to here the keys of a text may be split, at the price of scratch.
inline constexpr int64_t kFewTokens = 512;

// The compiled head size that holds head_dim.
constexpr int64_t own_attention_head(int64_t head_dim) { return head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : kOwnAttentionMaxHead; }

// Bytes of shared memory of a block, at most: that of f32, which bf16 has too where its rows are not aligned.
constexpr size_t own_attention_shared(int64_t head_dim, bool backward) {
  const int64_t head = own_attention_head(head_dim), tile = backward || head > 128 ? 32 : 64, rows = tile * (head + 1);
  const int64_t weights = tile * (tile + 1);
  return sizeof(float) * static_cast<size_t>(backward ? 4 * rows + 2 * weights + 2 * tile : 2 * rows + weights);
}

// Scratch, in bytes.

constexpr size_t own_attention_scratch(int64_t batch, int64_t seq, int64_t heads, bool backward) {
  return backward ? static_cast<size_t>(batch * seq * heads) * sizeof(float) : 0;
}

// Our backward on Hopper: so many keys of a block, and queries that it takes at a time; a length is padded to whole blocks of keys.
inline constexpr int kHopperKeys = 128;
constexpr int hopper_queries(int64_t head_dim) { return head_dim == 64 ? 128 : 64; }
constexpr bool hopper_heads(int64_t head_dim) { return head_dim == 64 || head_dim == 128; }
constexpr int64_t hopper_padded(int64_t seq) { return (seq + kHopperKeys - 1) / kHopperKeys * kHopperKeys; }
// Semaphores, and the number of blocks that started: integers that begin as zeros.
constexpr int64_t hopper_counters(int64_t batch, int64_t heads, int64_t seq, int64_t head_dim) {
  return batch * heads * hopper_padded(seq) / hopper_queries(head_dim) * 2 + 1;
}
constexpr size_t hopper_attention_scratch(int64_t batch, int64_t seq, int64_t heads, int64_t head_dim) {
  return static_cast<size_t>(batch * heads * hopper_padded(seq) * (head_dim + 2) + hopper_counters(batch, heads, seq, head_dim)) *
         sizeof(float);
}

// Of attention over a cache: blocks that share the keys of a segment, where all segments have few queries.
inline constexpr int kFewQueries = 8;        // of a segment, at most
inline constexpr int64_t kCacheChunk = 256;  // keys; how a text is split follows from its length alone
constexpr int64_t cache_chunks(int64_t tokens, int64_t max_queries, int64_t max_keys) {
  return tokens <= kFewTokens && max_queries <= kFewQueries ? (max_keys + kCacheChunk - 1) / kCacheChunk : 1;
}
constexpr size_t cache_attention_parts(int64_t tokens, int64_t heads, int64_t head_dim, int64_t max_queries, int64_t max_keys) {
  const int64_t chunks = cache_chunks(tokens, max_queries, max_keys);
  return chunks <= 1 ? 0 : static_cast<size_t>(tokens * heads * chunks * (head_dim + 2)) * sizeof(float);
}

}  // namespace hlat
