#include "ops/conformance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/cpu/cpu_ops.h"
#include "backend/null/null_ops.h"
#include "support/test_device.h"

namespace hlat {
namespace {

constexpr double kTiny = 1e-30;

// Half an ulp relative to the value.
double rounding_of(DType t) { return t == DType::bf16 ? 0x1p-8 : t == DType::f32 ? 0x1p-24 : 0x1p-53; }

std::vector<double> absolute(std::vector<double> v) {
  for (double& x : v) x = std::abs(x);
  return v;
}

}  // namespace

std::vector<TestBackend> test_backends() {
  std::vector<TestBackend> backends;
  for (const std::string& isa : available_isas())
    backends.push_back({.name = "cpu_" + isa, .make = [isa](Region& temp) { return std::make_unique<CpuOps>(temp, CpuOptions{2, isa}); }});
  if (const std::shared_ptr<Backend> cuda = cuda_backend(true)) {
    Region none;
    const std::shared_ptr<Ops> ops = cuda->make_ops(none);  // to wait with: all ops of a backend share its stream
    const auto allocate = [cuda](size_t bytes) {
      const auto free = [cuda](std::byte* p) { cuda->device().free(p); };
      return std::shared_ptr<std::byte>(cuda->device().allocate(std::max<size_t>(bytes, 1)), free);
    };
    backends.push_back({.name = "cuda",
                        .make = [cuda](Region& temp) { return cuda->make_ops(temp); },
                        .allocate = allocate,
                        .sync = [ops] { ops->finish(); }});
  }
  return backends;
}

Lab::Lab(const TestBackend& backend, DType dtype)
    : backend_(backend), dtype_(dtype), memory_(backend.allocate), ops_(backend.make(temp_)), ref_(ref_temp_) {}

Twin Lab::values(DType dtype, const Shape& shape, const std::vector<double>& values) {
  const Tensor test = memory_.from(dtype, shape, values);
  const std::vector<double> exact = to_f64(test);
  return {test, memory_.from(DType::f64, shape, exact), memory_.from(DType::f64, shape, absolute(exact))};
}

Twin Lab::input(const Shape& shape, std::string_view name, double std) {
  return values(dtype_, shape, to_f64(memory_.random(DType::f64, shape, name, std)));
}

// The reference shares the i32 tensor.
Twin Lab::ids(const std::vector<int32_t>& ids) {
  const Tensor t = memory_.from(DType::i32, {static_cast<int64_t>(ids.size())}, {ids.begin(), ids.end()});
  return {t, t, t};
}

Twin Lab::segments(const std::vector<KvSegment>& segments) {
  const Tensor t = memory_.zeros(DType::i32, {static_cast<int64_t>(segments.size()), kKvSegment});
  std::memcpy(t.data, segments.data(), t.bytes());
  return {t, t, t};
}

Twin Lab::output_ids(int64_t n) {
  const auto impossible = [&] { return memory_.from(DType::i32, {n}, std::vector<double>(static_cast<size_t>(n), -7)); };
  return {impossible(), impossible(), impossible()};
}

Twin Lab::output(DType dtype, const Shape& shape) {
  return values(dtype, shape, std::vector<double>(static_cast<size_t>(shape.numel()), std::numeric_limits<double>::quiet_NaN()));
}

// The scratch a dry run asks for is all the backend gets, and it must use exactly that.
void Lab::run_alone(const Body& body) {
  const View test{&Twin::test};
  Region measured = Region::measuring(Purpose::temp);
  NullOps null(measured, ops_.get());
  body(null, test);
  temp_ = memory_.region(Purpose::temp, measured.high_water());
  body(*ops_, test);
  backend_.sync();
  EXPECT_EQ(temp_.high_water(), measured.high_water());
  EXPECT_EQ(temp_.mark(), 0u);
}

void Lab::run(const Body& body) {
  run_alone(body);
  body(ref_, View{&Twin::ref});
}

void Lab::run_linear(const Body& body) {
  run(body);
  body(ref_, View{&Twin::mag});
}

void Lab::expect(const char* what, const Twin& t, const Tolerance& tolerance) {
  const std::vector<double> test = to_f64(t.test);
  const std::vector<double> ref = to_f64(t.ref);
  const double inner = tolerance.units * 0x1p-24 + (dtype_ == DType::bf16 ? tolerance.bf16_units * 0x1p-8 : 0);
  size_t wrong = 0;
  for (size_t i = 0; i < ref.size(); ++i) {
    const double magnitude = tolerance.magnitude.empty() ? std::abs(ref[i]) : tolerance.magnitude[i];
    const double allowed = (tolerance.rounded ? rounding_of(t.test.dtype) * std::abs(ref[i]) : 0) + inner * magnitude + kTiny;
    if (std::abs(test[i] - ref[i]) <= allowed) continue;  // false for NaN
    if (++wrong <= 3)
      ADD_FAILURE() << what << " " << t.test.str() << " element " << i << ": " << test[i] << ", expected " << ref[i] << " +- " << allowed;
  }
  if (wrong > 3) ADD_FAILURE() << what << ": " << wrong << " of " << ref.size() << " elements are wrong";
}

void Lab::expect_linear(const char* what, const Twin& t, double units) { expect(what, t, {.units = units, .magnitude = to_f64(t.mag)}); }

void Lab::adopt(const Twin& t) { from_f64(t.ref, to_f64(t.test)); }

const Table& conformance_table() {
  static const Table table = [] {
    Table t;
    add_linear_rows(t);
    add_layer_rows(t);
    add_attention_rows(t);
    add_cache_rows(t);
    add_loss_rows(t);
    add_optim_rows(t);
    add_narrow_rows(t);
    add_fp8_rows(t);
    add_fp8_fused_rows(t);
    return t;
  }();
  return table;
}

}  // namespace hlat
