// Cases that ops are measured by: those of a step count exactly what the step's ops count.
#include "bench/op_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "bench/op_rates.h"
#include "comm/self_comm.h"
#include "plan/dry_run.h"
#include "plan/machine_clock.h"
#include "runtime/backends.h"

namespace hlat::test {
namespace {

Config small_step(PrecisionKind precision, int64_t tp) {
  Config c;
  c.model.kv_heads = 2;
  c.train.precision = precision;
  c.train.micro_batch = 2;
  c.parallel.tp = tp;
  c.parallel.dp = 1;
  return c;
}

bool by_flops(const TracedOp& o) {
  const auto k = static_cast<OpKind>(o.kind);
  return k == OpKind::matmul || k == OpKind::attention || k == OpKind::attention_bwd;
}

TEST(OpCases, OfAStepAreItsOps) {
  for (const PrecisionKind precision :
       {PrecisionKind::fp32, PrecisionKind::mixed, PrecisionKind::bf16_sr, PrecisionKind::fp8, PrecisionKind::fp8_sr})
    for (const int64_t tp : {1, 2}) {
      const Config config = small_step(precision, tp);
      StepTrace trace;
      dry_run(config, {}, 0, &trace);
      const std::vector<OpCase> cases = step_cases(config, {&trace});
      for (const TracedOp& o : trace.ops()) {
        if (!by_flops(o)) continue;
        const bool same = std::any_of(cases.begin(), cases.end(), [&](const OpCase& c) { return c.traced == o; });
        EXPECT_TRUE(same) << name_of(static_cast<OpKind>(o.kind)) << " " << o.dims[0] << " " << o.dims[1] << " " << o.dims[2];
      }
      // Other ops have about their bytes, where they have enough to count.
      for (const OpCase& c : cases) {
        if (by_flops(c.traced)) continue;
        const bool near = std::any_of(trace.ops().begin(), trace.ops().end(), [&](const TracedOp& o) {
          return o.kind == c.traced.kind && std::abs(o.bytes - c.traced.bytes) <= 0.25 * o.bytes + 1024;
        });
        EXPECT_TRUE(near) << name_of(c.kind) << " " << c.traced.bytes;
      }
    }
}

TEST(OpCases, StandardOnesSpanSizes) {
  std::set<OpKind> kinds;
  double least = INFINITY, most = 0;
  for (const OpCase& c : standard_cases({})) {
    kinds.insert(c.kind);
    if (c.kind != OpKind::matmul) continue;
    least = std::min(least, c.traced.flops);
    most = std::max(most, c.traced.flops);
  }
  EXPECT_EQ(kinds.size(), 18U);
  EXPECT_LT(least, 1e8);
  EXPECT_GT(most, 1e13);
}

// Under a policy with FP8 each product comes in both types: fast sums forward, gradients as first operands.
TEST(OpCases, StandardOnesHaveProductsOfFp8WhereThePolicyDoes) {
  std::set<OpKind> kinds;
  std::map<std::tuple<DType, DType, int>, int> products;
  for (const OpCase& c : standard_cases({.precision = precision_of(PrecisionKind::fp8)})) {
    kinds.insert(c.kind);
    const TracedOp& o = c.traced;
    if (c.kind == OpKind::matmul) ++products[{static_cast<DType>(o.dtype), static_cast<DType>(o.out), o.form}];
  }
  EXPECT_EQ(kinds.size(), 19U);  // quantize too
  const int each = products[{DType::bf16, DType::bf16, 2}];
  EXPECT_EQ(each, 40);
  EXPECT_EQ((products[{DType::f8e4m3, DType::bf16, 2 | 8}]), each);
  EXPECT_EQ((products[{DType::f8e5m2, DType::bf16, 2}]), each);
  EXPECT_EQ((products[{DType::f8e5m2, DType::f32, 2 | 4}]), each);
  EXPECT_EQ(products.size(), 6U);
}

// The peak of FP8 is a figure of its own.
TEST(OpRates, TellProductsOfFp8FromOthers) {
  const auto product = [](DType type) {
    TracedOp o{.kind = static_cast<uint8_t>(OpKind::matmul), .dims = {64, 64, 64}};
    o.dtype = static_cast<uint8_t>(type);
    o.out = static_cast<uint8_t>(DType::bf16);
    o.form = 2;
    return product_case(o);
  };
  DeviceConfig device;
  device.backend = "cpu";
  const auto backend = make_backend(device, {.threads = 1});
  SelfComm world("world");
  const OpRatesFound found = measure_op_rates(*backend, world, {product(DType::bf16), product(DType::f8e5m2)},
                                              {.seconds = 0.01, .most_bytes = size_t{1} << 28, .most_seconds = 10});
  ASSERT_EQ(found.rates.matmul.size(), 2U);
  EXPECT_EQ(found.rates.matmul[1].type, DType::f8e5m2);
  EXPECT_EQ(found.fp8_peak, found.rates.matmul[1].flops_per_s);
  EXPECT_GE(found.matmul_peak, found.rates.matmul[0].flops_per_s);
}

// With the rows of a step's own ops the clock has nothing of products and attention to estimate.
TEST(OpRates, MeasureTheOpsOfAStep) {
  Config config = small_step(PrecisionKind::fp32, 1);
  config.device.backend = "cpu";
  StepTrace trace;
  dry_run(config, {}, 0, &trace);
  const auto backend = make_backend(config.device, {.threads = 1});
  SelfComm world("world");
  const OpRatesFound found =
      measure_op_rates(*backend, world, step_cases(config, {&trace}), {.seconds = 0.01, .most_bytes = size_t{1} << 28, .most_seconds = 10});
  EXPECT_GE(found.rounds, 1);
  EXPECT_EQ(found.rates.attention.size(), 2U);
  Machine m;
  m.cores = 1;
  m.rates = found.rates;
  for (Figure* share : {&m.rates.bandwidth_share, &m.rates.matmul_share, &m.rates.attention_share}) share->set(0.5, "a test", "now");
  m.memory_bandwidth.set(1e10, "a test", "now");
  const MachineClock clock(m, layout_of(config));
  EXPECT_GT(simulate({&trace}, {}, clock).seconds, 0);
  for (const std::string& line : clock.estimates({&trace})) {
    EXPECT_EQ(line.find("products"), std::string::npos) << line;
    EXPECT_EQ(line.find("attention"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace hlat::test
