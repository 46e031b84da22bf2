// What ops take besides tensors: shapes, the state and scalars of updates, and the segments of a cache. Shape letters as in ops/ops.h.
#pragma once

#include <array>
#include <cstdint>

#include "ops/element_map.h"
#include "tensor/tensor.h"

namespace hlat {

// Packed attention input: row n of qkv is [q heads | k heads | v heads], (H + 2K) * E wide.
struct AttentionShape {
  int64_t batch = 0;
  int64_t seq = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;

  int64_t tokens() const { return batch * seq; }
  int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  int64_t out_width() const { return heads * head_dim; }
  bool operator==(const AttentionShape&) const = default;
};

// A cache holds keys and values of tokens that were read: row `slot` is [k heads | v heads] of one token, after RoPE. A segment is a
// stretch of consecutive tokens of one text that are computed now, and tells where the keys of that text lie. A tensor of them is (S,
// kKvSegment).
inline constexpr int kKeyRuns = 4;
struct KvSegment {
  int32_t first = 0, count = 0;  // its tokens: rows [first, first + count) of what is computed
  int32_t keys = 0;              // tokens of the text so far, with its own: query i sees the first keys - count + i + 1 of them
  int32_t unused = 0;
  // Key j lies in slot run_slot[r] + j - (r > 0 ? run_end[r - 1] : 0) of the first run r with j < run_end[r]. Runs that are not needed end
  // with the one before them; the last one ends at `keys` or later.
  std::array<int32_t, kKeyRuns> run_slot{}, run_end{};
};
inline constexpr int64_t kKvSegment = sizeof(KvSegment) / sizeof(int32_t);

struct CacheShape {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t max_queries = 0, max_keys = 0;  // of a segment, at most
  double pairs = 0;                       // of a query and a key it sees, over all segments: what the call costs

  int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  int64_t out_width() const { return heads * head_dim; }
  int64_t cache_width() const { return 2 * kv_heads * head_dim; }
};

enum class Rounding : uint8_t { nearest, stochastic };

struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false, accumulate = false;
  DType a = DType::f32, b = DType::f32, c = DType::f32;
  bool operator==(const MatmulShape&) const = default;
};

// What changes from update to update. It lies on the device, so that the same call, recorded once, makes every update.
struct AdamwStep {
  double lr = 0;
  double correction1 = 1, correction2_rsqrt = 1;  // of the moments' bias: 1 / (1 - beta1^number), 1 / sqrt(1 - beta2^number)
  double number = 1;                              // 1 for the first update; keys the rounding noise

  static AdamwStep of(double lr, int64_t number, float beta1, float beta2);
};
inline constexpr int64_t kAdamwStep = sizeof(AdamwStep) / sizeof(double);

struct AdamwTensors {
  Tensor weight;       // what the model computes with
  Tensor master;       // f32 copy, or undefined when the weight is its own master
  Tensor m, v;         // moments
  Tensor grad;         // accumulated gradient
  Tensor scale;        // (1) f32: multiplies the gradient (clipping); device-side, so no host round trip
  Tensor step;         // (kAdamwStep) f64: an AdamwStep
  Tensor weight_sq;    // (1) f64: sum of squares of the new weights is written here
  Tensor change = {};  // (kAdamwChange) f64: an AdamwChange is written here; undefined: not measured
  // Of a weight in FP8, which has a master (f32, or bf16 that rounds as weights do): it is the new master, rounded.
  Tensor fp8_scale = {};  // (kFp8Scale)
  Tensor fp8_seen = {};   // (kFp8Seen)

  // What carries a weight from step to step and is rounded as weights are, where it is not an f32 master beside a bf16 weight.
  const Tensor& updated() const { return is_fp8(weight.dtype) ? master : weight; }
};

// What an update did to one tensor: of the values that carry it from step to step, masters where there are any, and of the moments as they
// are stored.
struct AdamwChange {
  double change_sq = 0;  // sum of squares of new minus old
  double unchanged = 0;  // elements that are what they were
  double m_max = 0;      // largest absolute value
  double v_min = 0;      // smallest of those that are not 0; infinity where all are
  double v_max = 0;
};
inline constexpr int64_t kAdamwChange = sizeof(AdamwChange) / sizeof(double);

struct AdamwScalars {
  float beta1 = 0.9f, beta2 = 0.95f, eps = 1e-8f, weight_decay = 0;
  Rounding round_weights = Rounding::nearest, round_moments = Rounding::nearest;
  uint64_t seed = 0, stream = 0;  // noise: keyed by (seed, stream, step number, element); see NoiseKey
  ElementMap map = {};            // where the elements of the tensors lie in the global tensor
};

struct AdamwItem {
  AdamwTensors tensors;
  AdamwScalars scalars;
};

}  // namespace hlat
