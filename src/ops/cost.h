// What a step costs, counted by the Ops front: calls, floating-point operations, bytes moved and, on demand, time per op.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hlat {

enum class OpKind : uint8_t {
  embed,
  embed_bwd,
  matmul,
  rmsnorm,
  add_rmsnorm,
  rmsnorm_bwd,
  rope,
  attention,
  attention_bwd,
  cache_append,
  cache_attention,
  swiglu,
  swiglu_bwd,
  add,
  cross_entropy,
  cross_entropy_bwd,
  argmax,
  cast,
  fill,
  fill_normal,
  sum,
  sum_squares,
  clip_scale,
  adamw,
  checksum,
  softmax,
  largest,
  add_losses,
  quantize,
};
inline constexpr int kOpKinds = 29;

std::string_view name_of(OpKind k);

struct OpCost {
  int64_t calls = 0;
  double flops = 0;
  double bytes = 0;
  double seconds = 0;  // only when the front measures time
};

struct Cost {
  std::array<OpCost, kOpKinds> op{};
  std::map<std::string, OpCost> matmuls;  // by shape, only when the front measures time
  const OpCost& operator[](OpKind k) const { return op[static_cast<size_t>(k)]; }
};

}  // namespace hlat
