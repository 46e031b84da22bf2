// Element types. f64 exists for scalars that must not lose bits (losses, norms) and for the reference backend of the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hlat {

enum class DType : uint8_t { f32, bf16, i32, f64 };

constexpr size_t size_of(DType t) { return t == DType::bf16 ? 2 : t == DType::f64 ? 8 : 4; }

constexpr std::string_view name_of(DType t) {
  switch (t) {
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
    case DType::f64: return "f64";
  }
  return "?";
}

}  // namespace hlat
