// Blocks of a thousand elements go through an accumulator that stays in the first-level cache. The loops are plain and
// without branches, so that the compiler makes vectors of them (this file is built with -O3).
#include "comm/sum.h"

#include <algorithm>
#include <bit>

#include "base/bf16.h"
#include "base/error.h"

namespace hlat {
namespace {

constexpr int64_t kBlock = 1024;

template <class T>
void load(T* __restrict acc, const T* __restrict x, int64_t n) {
  std::copy(x, x + n, acc);
}
template <class T>
void add(T* __restrict acc, const T* __restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) acc[i] += x[i];
}
template <class T>
void store(T* __restrict out, const T* __restrict acc, int64_t n) {
  std::copy(acc, acc + n, out);
}

float widen(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

void load(float* __restrict acc, const uint16_t* __restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) acc[i] = widen(x[i]);
}
void add(float* __restrict acc, const uint16_t* __restrict x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) acc[i] += widen(x[i]);
}
// to_bf16 without its branch.
void store(uint16_t* __restrict out, const float* __restrict acc, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t u = std::bit_cast<uint32_t>(acc[i]);
    const uint32_t nan = -static_cast<uint32_t>((u & 0x7fffffffu) > 0x7f800000u);  // all ones for a NaN
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    out[i] = static_cast<uint16_t>((((u >> 16) | 0x40u) & nan) | (rounded & ~nan));
  }
}

template <class T, class Acc>
void sum(T* out, const std::vector<const void*>& terms, int64_t count) {
  alignas(64) Acc acc[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    load(acc, static_cast<const T*>(terms[0]) + begin, n);
    for (size_t k = 1; k < terms.size(); ++k) add(acc, static_cast<const T*>(terms[k]) + begin, n);
    store(out + begin, acc, n);
  }
}

}  // namespace

void sum_in_order(void* out, const std::vector<const void*>& terms, int64_t count, DType dtype) {
  HLAT_CHECK(!terms.empty(), "a sum of nothing");
  switch (dtype) {
    case DType::f32: return sum<float, float>(static_cast<float*>(out), terms, count);
    case DType::f64: return sum<double, double>(static_cast<double*>(out), terms, count);
    case DType::bf16: return sum<uint16_t, float>(static_cast<uint16_t*>(out), terms, count);
    case DType::i32:
    case DType::f8e4m3:
    case DType::f8e5m2: break;
  }
  HLAT_CHECK(false, "sums of {} are not defined", name_of(dtype));
}

}  // namespace hlat
