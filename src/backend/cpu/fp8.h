// Stores in FP8 with a scale: what rounding meets is counted, in numbers that do not depend on the order.
#pragma once

#include <cstdint>

#include "ops/fp8.h"

namespace hlat {

// Of the values that one thread stored.
struct Fp8Met {
  uint32_t largest = 0;  // bits of the largest absolute value in f32; those of NaN are above all
  int64_t saturated = 0, lost = 0;
};

void add_met(Fp8Seen& seen, const Fp8Met& met);

// to[i] = element begin + i of src (f32 or bf16), for count of them, in the FP8 type that is named.
void store_fp8(uint8_t* to, DType type, const Tensor& src, int64_t begin, int64_t count, float scale, Fp8Met& met);

}  // namespace hlat
