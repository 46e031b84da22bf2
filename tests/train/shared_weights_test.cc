// Replicas whose gradients are summed over dp by different groups, each in an order of its own: they stay equal bit by bit, because the
// first holder's weights and rank 0's clipping factor are handed to the others.
#include "train/shared_weights.h"

#include <gtest/gtest.h>

#include "comm/host_exchange.h"
#include "plan/dry_run.h"
#include "support/host_memory.h"
#include "support/layout_run.h"
#include "support/library_comm.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

// Without this the tests below would prove nothing.
TEST(LibrarySums, DifferBetweenGroupsAndAgreeWithinOne) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    constexpr int64_t kCount = 64;
    std::array<std::vector<double>, 2> sums;  // by group
    for (const int group : {0, 1})
      run_thread_ranks(4, [&](Comm& world) {
        LibraryComm comm(world.split(0, world.rank(), "dp"), group);
        Region none;
        comm.reserve(none);
        HostMemory host;
        const Tensor t = host.random(dtype, {kCount}, fmt::format("term {}", world.rank()));
        comm.all_reduce(t);
        const std::vector<double> all = all_gather_values(comm.host(), load_f64(t, 5));
        EXPECT_EQ(all, std::vector<double>(4, all[0]));
        if (world.rank() == 0) sums[static_cast<size_t>(group)] = to_f64(t);
      });
    EXPECT_NE(sums[0], sums[1]);
  }
}

class SharedWeightsRun : public ::testing::TestWithParam<Layout> {};

// The run itself compares the replicas of every weight, and losses and norms of all ranks.
TEST_P(SharedWeightsRun, KeepsReplicasEqualWhateverTheOrderOfSums) {
  const LayoutResult many = run_layout_with_library_sums(GetParam().config(), 3);
  EXPECT_EQ(many.steps.size(), 3u);
}

std::vector<Layout> shared_layouts() {
  std::vector<Layout> rows;
  for (const PrecisionKind p : {PrecisionKind::fp32, PrecisionKind::mixed, PrecisionKind::bf16_sr})
    for (Layout l : {Layout{.tp = 2, .dp = 4},                               // norms, the same gradient on both
                     Layout{.tp = 2, .dp = 4, .sp = true, .zero1 = true},    // norms, summed over tp
                     Layout{.tp = 3, .dp = 4, .zero1 = true},                // shards of other elements on each tp rank
                     Layout{.tp = 4, .dp = 4, .zero1 = true},                // rows of kv heads
                     Layout{.pp = 2, .dp = 4, .tied = true},                 // a tied embedding
                     Layout{.pp = 3, .dp = 4, .zero1 = true, .tied = true},  // and stages that share the clipping factor alone
                     Layout{.tp = 3, .pp = 3, .sp = true},                   // no dp: the clipping factor
                     Layout{.tp = 2, .pp = 2, .dp = 4, .sp = true, .zero1 = true, .chunks = 2, .tied = true}}) {
      l.precision = p;
      rows.push_back(l);
    }
  // Rows of kv heads in FP8, with masters of their own.
  for (const PrecisionKind p : {PrecisionKind::fp8, PrecisionKind::fp8_sr})
    rows.push_back({.tp = 4, .dp = 4, .zero1 = true, .precision = p});
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Table, SharedWeightsRun, ::testing::ValuesIn(shared_layouts()), [](const auto& row) { return row.param.name(); });

const CommCost& broadcasts_over(const std::string& axis, const RankPlan& plan) {
  return std::find_if(plan.traffic.begin(), plan.traffic.end(), [&](const AxisTraffic& a) { return a.axis == axis; })
      ->traffic[CommKind::broadcast];
}

// One message for all norms, and the three totals of a step along each axis; with two dp ranks, or with sums in rank order, nothing.
TEST(SharedWeights, AreHandedOutInOneMessagePerAxis) {
  const auto extra = [](const Layout& l, const std::string& axis) {
    const RankPlan host = dry_run(l.config(), {.transport = Transport::host}), nccl = dry_run(l.config(), {.transport = Transport::nccl});
    return broadcasts_over(axis, nccl).calls - broadcasts_over(axis, host).calls;
  };
  EXPECT_EQ(extra({.tp = 2, .dp = 4}, "tp"), 1 + 3);
  EXPECT_EQ(extra({.tp = 2, .dp = 4}, "dp"), 3);
  EXPECT_EQ(extra({.tp = 4, .dp = 4}, "kv"), 1);
  EXPECT_EQ(extra({.pp = 2, .dp = 4, .tied = true}, "ends"), 1);
  EXPECT_EQ(extra({.tp = 2, .dp = 2}, "tp"), 0);
  // Nine norms of 64 elements.
  const RankPlan plan = dry_run(Layout{.tp = 2, .dp = 4}.config(), {.transport = Transport::nccl});
  const RankPlan none = dry_run(Layout{.tp = 2, .dp = 4}.config(), {.transport = Transport::host});
  EXPECT_EQ(broadcasts_over("tp", plan).bytes - broadcasts_over("tp", none).bytes, 9 * 64 * 4 + 3 * 8);
}

}  // namespace
}  // namespace hlat
