// Element types. FP8 (base/fp8.h) is for operands of products, with a scale beside (ops/fp8.h). f64 exists for scalars that must not lose
// bits (losses, norms) and for the reference backend of the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hlat {

enum class DType : uint8_t { f32, bf16, i32, f64, f8e4m3, f8e5m2 };

constexpr bool is_fp8(DType t) { return t == DType::f8e4m3 || t == DType::f8e5m2; }

constexpr size_t size_of(DType t) { return is_fp8(t) ? 1 : t == DType::bf16 ? 2 : t == DType::f64 ? 8 : 4; }

constexpr std::string_view name_of(DType t) {
  switch (t) {
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
    case DType::f64: return "f64";
    case DType::f8e4m3: return "f8e4m3";
    case DType::f8e5m2: return "f8e5m2";
  }
  return "?";
}

}  // namespace hlat
