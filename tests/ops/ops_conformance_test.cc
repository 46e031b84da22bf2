// Runs the conformance table on every backend of this machine: one test per backend, op and dtype.
// conformance.h says what is compared and why the tolerances are what they are.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/conformance.h"

namespace hlat {
namespace {

struct Param {
  TestBackend backend;
  std::string op;
  DType dtype;
};

std::string name_of(const Param& p) { return fmt::format("{}_{}_{}", p.backend.name, p.op, name_of(p.dtype)); }
void PrintTo(const Param& p, std::ostream* out) { *out << name_of(p); }

std::vector<Param> params() {
  std::vector<std::string> ops;
  for (const Row& row : conformance_table())
    if (std::find(ops.begin(), ops.end(), row.op) == ops.end()) ops.push_back(row.op);
  std::vector<Param> out;
  for (const TestBackend& backend : test_backends())
    for (const std::string& op : ops)
      for (const DType dtype : {DType::f32, DType::bf16}) out.push_back({backend, op, dtype});
  return out;
}

class Conformance : public ::testing::TestWithParam<Param> {};

TEST_P(Conformance, AgreesWithReference) {
  for (const Row& row : conformance_table()) {
    if (row.op != GetParam().op) continue;
    SCOPED_TRACE(row.op + " " + row.shape);
    Lab lab(GetParam().backend, GetParam().dtype);
    row.body(lab);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Conformance, ::testing::ValuesIn(params()), [](const auto& p) { return name_of(p.param); });

}  // namespace
}  // namespace hlat
