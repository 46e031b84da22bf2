// A test on one backend of this machine: memory, a temp region of just the planned size, and the backend's ops.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "backend/null/null_ops.h"
#include "ops/conformance.h"
#include "support/adamw_call.h"

namespace hlat {

inline bool same_bits(const Tensor& a, const Tensor& b) { return a.bytes() == b.bytes() && std::memcmp(a.data, b.data, a.bytes()) == 0; }

class OpsFixture : public ::testing::TestWithParam<TestBackend> {
 protected:
  OpsFixture() : memory_(GetParam().allocate), ops_(GetParam().make(temp_)) {}

  // Runs on a temp region of just the size a dry run asks for.
  template <class Body>
  void run(const Body& body) {
    Region measured = Region::measuring(Purpose::temp);
    NullOps null(measured, ops_.get());
    body(static_cast<Ops&>(null));
    temp_ = memory_.region(Purpose::temp, measured.high_water());
    body(*ops_);
    GetParam().sync();
  }
  Tensor vector(DType dtype, const std::vector<double>& v) { return memory_.from(dtype, {static_cast<int64_t>(v.size())}, v); }

  // An AdamwStep where ops read it; of the default betas.
  Tensor adamw_step(double lr, int64_t number) {
    const AdamwStep s = AdamwStep::of(lr, number, AdamwScalars{}.beta1, AdamwScalars{}.beta2);
    return vector(DType::f64, {s.lr, s.correction1, s.correction2_rsqrt, s.number});
  }

  HostMemory memory_;
  Region temp_;
  std::unique_ptr<Ops> ops_;
};

}  // namespace hlat
