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

}  // namespace hlat
