// A config on a machine model: memory, peaks and cores that ranks of a host share.
#include "plan/machine_plan.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/machine_costs.h"
#include "plan/step_shapes.h"

namespace hlat::test {
namespace {

Machine two_cores() {
  Machine m;
  m.name = m.file = "two cores";
  m.cores = 2;
  m.ranks_per_node = 0;
  m.memory.set(8e9, "test", "2026-11");
  m.host_memory.set(16e9, "test", "2026-11");
  m.peak_f32.set(1e11, "test", "2026-11");
  m.memory_bandwidth.set(1e10, "test", "2026-11");
  for (Figure* share : {&m.rates.matmul_share, &m.rates.attention_share, &m.rates.bandwidth_share}) share->set(0.5, "test", "2026-11");
  m.links.node.bytes_per_s.set(1e12, "test", "2026-11");
  m.links.network.bytes_per_s.set(1e12, "test", "2026-11");
  m.links.sum_bytes_per_s.set(1e12, "test", "2026-11");
  return m;
}

TEST(MachinePlan, RanksOfAHostShareItsMemoryAndItsPeak) {
  const MachinePlan plan(two_cores());
  EXPECT_DOUBLE_EQ(plan.fit(2).available, 8e9);
  EXPECT_DOUBLE_EQ(plan.fit(8).available, 2e9);
  EXPECT_TRUE(plan.fit(8).on_host);
  // The same work on 2 and on 8 ranks of two cores: as fast, and the same share of the peak.
  const Config two = small_step(1, 1, 2, 16), eight = small_step(1, 1, 8, 4);
  const TimedPlan a = plan.time(two, Play::whole), b = plan.time(eight, Play::whole);
  EXPECT_NEAR(a.mfu(*plan.peak_flops(two)), b.mfu(*plan.peak_flops(eight)), 0.05 * a.mfu(*plan.peak_flops(two)));
  EXPECT_LT(a.mfu(*plan.peak_flops(two)), 1);
}

TEST(MachinePlan, EveryHostBringsItsCores) {
  Machine m = two_cores();
  m.ranks_per_node = 2;
  const MachinePlan plan(m);
  // Twice the hosts and twice the batch take as long.
  const double one = plan.time(small_step(1, 1, 2, 8), Play::whole).time.seconds,
               two = plan.time(small_step(1, 1, 4, 8), Play::whole).time.seconds;
  EXPECT_NEAR(two, one, 0.1 * one);
}

TEST(MachinePlan, LibrariesThatLeaveNoMemoryAreTold) {
  Machine m = two_cores();
  m.cores = 0;
  m.ranks_per_node = 1;
  m.context.set(9e9, "test", "2026-11");
  try {
    MachinePlan(m).fit(1);
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("libraries.context"), std::string::npos) << e.what();
  }
}

// A run multiplies FP8 where the machine does; elsewhere it is bf16 that bounds it.
TEST(MachinePlan, ThePeakOfAnFp8RunIsThatOfWhatIsMultiplied) {
  Machine m = two_cores();
  m.cores = 0;
  m.ranks_per_node = 2;
  m.peak_bf16.set(2e11, "test", "2026-11");
  Config fp8 = small_step(1, 1, 2, 8), mixed = fp8;
  fp8.train.precision = PrecisionKind::fp8;
  mixed.train.precision = PrecisionKind::mixed;
  for (const int capability : {0, 80}) {
    m.capability = capability;
    const MachinePlan plan(m);
    EXPECT_EQ(plan.peak_flops(fp8), 2e11);
    const TimedPlan a = plan.time(fp8), b = plan.time(mixed);
    EXPECT_GT(a.time.seconds, b.time.seconds) << "casts, and no faster product";
    EXPECT_LT(a.mfu(*plan.peak_flops(fp8)), b.mfu(*plan.peak_flops(mixed)));
  }
  m.peak_fp8.set(4e11, "test", "2026-11");
  EXPECT_EQ(MachinePlan(m).peak_flops(fp8), 2e11) << "sm_80 has none, whatever the file says";
  m.capability = 89;
  EXPECT_EQ(MachinePlan(m).peak_flops(fp8), 4e11);
  m.capability = 0;
  EXPECT_EQ(MachinePlan(m).peak_flops(fp8), 4e11);
  m.cores = 2, m.threads = 1;
  EXPECT_EQ(MachinePlan(m).peak_flops(fp8), 2e11) << "measured products of FP8 on a CPU are emulated";
  m.cores = 0, m.capability = 90, m.peak_fp8.value.reset();
  EXPECT_EQ(MachinePlan(m).peak_flops(fp8), std::nullopt) << "a share of bf16's peak would be above 1";
}

TEST(MachinePlan, AnAutomaticMicroBatchIsChosenBeforeALayoutIsScored) {
  Machine m = two_cores();
  m.ranks_per_node = 2;
  Config config = small_step(1, 1, 2, 8);
  config.train.micro_batch = 0;
  const ScalingPoint p = scaling_point(MachinePlan(m), config, 1);
  EXPECT_TRUE(p.fits()) << p.problem;
  EXPECT_GT(p.tokens_per_s, 0);
}

}  // namespace
}  // namespace hlat::test
