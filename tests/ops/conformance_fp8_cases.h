// What the conformance rows of FP8 share: stores for the backend and for the reference, and comparisons of what they hold bit by bit.
#pragma once

#include <array>

#include "ops/conformance.h"

namespace hlat {

struct StoreCase {
  DType type = DType::f8e4m3;
  bool rows = true, columns = false, seen = true;
  double scale = 1;

  std::string name() const {
    return fmt::format("{}{}{}{} scale {}", name_of(type), rows ? " rows" : "", columns ? " columns" : "", seen ? " seen" : "", scale);
  }
};

// Every type with rows, columns or both, counted and not.
std::vector<StoreCase> store_cases();

// Matrices that a GPU stores in pieces, of 8 columns and 16 rows, which do not fill its tiles of 128.
struct MatrixSize {
  int64_t n, columns;
};
inline constexpr std::array kPartsOfTiles = {MatrixSize{48, 24}, MatrixSize{144, 136}, MatrixSize{16, 1032}};

struct StoreTwins {
  Twin rows, columns, scale, seen;
  Fp8Store at(const View& view) const { return {view(rows), view(columns), view(scale), view(seen)}; }
};

// Codes that no one has written yet, and a count that goes on.
StoreTwins make_store(Lab& lab, const StoreCase& c, int64_t rows, int64_t columns);

// The same tensor, with the same type, for the backend and for the reference.
Twin same_type(Lab& lab, DType dtype, const Shape& shape, const std::vector<double>& values);
Twin fp8_scale(Lab& lab, double scale);

// Values of every kind around what a type holds with a scale: of all sizes, ties, both zeros, what saturates and what is lost, and where it
// is asked for infinities and NaN.
std::vector<double> all_kinds(int64_t count, double scale, bool not_finite, std::string_view name);

// Elements of one type, bit by bit; NaN is NaN, but a code of FP8 also has its sign, where signs are asked for.
void expect_bits(const char* what, const Tensor& test, const Tensor& expected, bool signs = true);
void expect_store(const StoreTwins& store, bool signs = true);

}  // namespace hlat
