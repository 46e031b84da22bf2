#include "ops/cost.h"

namespace hlat {

std::string_view name_of(OpKind k) {
  constexpr std::array<std::string_view, kOpKinds> names = {
      "embed",      "embed_bwd",   "matmul",        "rmsnorm",           "add_rmsnorm",     "rmsnorm_bwd",
      "rope",       "attention",   "attention_bwd", "cache_append",      "cache_attention", "swiglu",
      "swiglu_bwd", "add",         "cross_entropy", "cross_entropy_bwd", "argmax",          "cast",
      "fill",       "fill_normal", "sum",           "sum_squares",       "clip_scale",      "adamw",
      "checksum",   "softmax",     "largest",       "add_losses",        "quantize",
  };
  static_assert(static_cast<int>(OpKind::quantize) + 1 == kOpKinds && !names.back().empty());
  return names[static_cast<size_t>(k)];
}

}  // namespace hlat
