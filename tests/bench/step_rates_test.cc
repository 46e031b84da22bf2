// A machine's rates as they are inside steps: every table is scaled by its own factor, and collectives, not messages, wait for late peers.
// What more threads keep of proportional speed.
#include "bench/step_rates.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "bench/link_rates.h"
#include "comm/self_comm.h"

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

// Against rates that no CPU has nearly nothing of proportional speed is left; against those that any CPU exceeds, all of it and no more.
TEST(StepRates, SharesOfThreadsAreOfProportionalSpeed) {
  Config config;
  config.model.layers = 1;
  config.model.hidden = 32;
  config.model.heads = config.model.kv_heads = 2;
  config.model.ffn = config.model.vocab = 64;
  config.train.seq_len = 16;
  config.train.global_batch = 4;
  config.train.micro_batch = 1;
  config.train.precision = PrecisionKind::fp32;
  Machine m;
  m.cores = 2;
  m.ranks_per_node = 0;
  m.peak_f32.set(1e18, "test", "now");
  m.memory_bandwidth.set(1, "test", "now");
  m.rates.matmul_share.set(1, "test", "now");
  m.rates.attention_share.set(1, "test", "now");
  m.rates.bandwidth_share.set(1, "test", "now");
  m.rates.matmul.push_back({.m = 16, .n = 32, .k = 32, .flops_per_s = 1e18});
  m.rates.attention.push_back({.heads = 2, .tokens = 16, .head_dim = 16, .flops_per_s = 1e18});
  m.rates.attention.push_back({.backward = true, .heads = 2, .tokens = 16, .head_dim = 16, .flops_per_s = 1e18});
  SelfComm self;
  CpuBackend backend({.threads = 2});
  const ThreadShares s = measure_thread_shares(config, backend, self, 2, m);
  EXPECT_EQ(s.threads, 2);
  EXPECT_GT(s.products, 0);
  EXPECT_LT(s.products, 1e-3);
  EXPECT_GT(s.attention, 0);
  EXPECT_LT(s.attention, 1e-3);
  EXPECT_EQ(s.others, 1);
}

TEST(StepRates, TheMeanLeavesOutTheLargestTenth) {
  EXPECT_DOUBLE_EQ(trimmed_mean({1, 2, 3, 4, 5, 6, 7, 8, 9, 1000}), 5);
  EXPECT_DOUBLE_EQ(trimmed_mean({4, 6}), 5);
}

}  // namespace
}  // namespace hlat::test
