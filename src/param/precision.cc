#include "param/precision.h"

#include "base/error.h"

namespace hlat {

Precision precision_of(PrecisionKind k) {
  using enum DType;
  switch (k) {
    case PrecisionKind::fp32: return {};
    case PrecisionKind::mixed: return {.compute = bf16, .weight = bf16, .master = true, .moment = f32, .grad = f32, .stochastic = false};
    case PrecisionKind::mixed_sr: return {.compute = bf16, .weight = bf16, .master = true, .moment = f32, .grad = f32, .stochastic = true};
    case PrecisionKind::bf16_sr:
      return {.compute = bf16, .weight = bf16, .master = false, .moment = bf16, .grad = bf16, .stochastic = true};
    case PrecisionKind::bf16: return {.compute = bf16, .weight = bf16, .master = false, .moment = bf16, .grad = bf16, .stochastic = false};
  }
  HLAT_CHECK(false, "precision kind {}", static_cast<int>(k));
  return {};
}

}  // namespace hlat
