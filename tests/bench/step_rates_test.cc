// A machine's rates as they are inside steps: every table is scaled by its own factor, and collectives, not messages, wait for late peers.
#include "bench/step_rates.h"

#include <gtest/gtest.h>

#include "bench/median.h"

namespace hlat::test {
namespace {

TEST(StepRates, EachTableHasItsFactor) {
  Machine m;
  m.rates.matmul.push_back({.m = 8, .n = 8, .k = 8, .flops_per_s = 100e9});
  m.rates.attention.push_back({.flops_per_s = 60e9});
  m.rates.memory_ops.push_back({.bytes_per_s = 20e9});
  for (const CommKind op : {CommKind::all_reduce, CommKind::send})
    m.links.measured.push_back({.op = op, .ranks = 2, .bytes = 1024, .seconds = 50e-6});
  apply({.products = 1.25, .attention = 1.5, .others = 2, .late = 100e-6}, m);
  EXPECT_DOUBLE_EQ(m.rates.matmul[0].flops_per_s, 80e9);
  EXPECT_DOUBLE_EQ(m.rates.attention[0].flops_per_s, 40e9);
  EXPECT_DOUBLE_EQ(m.rates.memory_ops[0].bytes_per_s, 10e9);
  EXPECT_DOUBLE_EQ(m.links.measured[0].seconds, 150e-6);
  EXPECT_DOUBLE_EQ(m.links.measured[1].seconds, 50e-6);
}

TEST(StepRates, TheMeanLeavesOutTheLargestTenth) {
  EXPECT_DOUBLE_EQ(trimmed_mean({1, 2, 3, 4, 5, 6, 7, 8, 9, 1000}), 5);
  EXPECT_DOUBLE_EQ(trimmed_mean({4, 6}), 5);
}

}  // namespace
}  // namespace hlat::test
