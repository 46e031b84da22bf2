// The clock of a machine model: exact where the machine was measured, between that and the peak elsewhere, links by where groups lie.
#include "plan/machine_clock.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "comm/comm.h"
#include "plan/collective_time.h"
#include "plan/dry_run.h"

namespace hlat::test {
namespace {

TracedOp product(int64_t m, int64_t n, int64_t k, DType out = DType::bf16, uint8_t form = 2) {
  TracedOp o{.kind = static_cast<uint8_t>(OpKind::matmul), .dims = {m, n, k}};
  o.dtype = static_cast<uint8_t>(DType::bf16);
  o.out = static_cast<uint8_t>(out);
  o.form = form;
  o.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  o.bytes = 2.0 * static_cast<double>(m * n + n * k + m * k);
  return o;
}

TracedOp plain(OpKind kind, double bytes) { return {.kind = static_cast<uint8_t>(kind), .dims = {}, .bytes = bytes}; }

TracedCall collective(Axis axis, CommKind kind, double bytes) {
  return {.group = static_cast<uint8_t>(axis), .kind = static_cast<uint8_t>(kind), .bytes = bytes};
}

// Efficiency grows with every size, as on real devices.
Machine measured_machine() {
  Machine m;
  m.file = "m.yaml";
  m.name = "m";
  m.ranks_per_node = 8;
  m.peak_bf16.set(1000e12, "test", "now");
  m.memory_bandwidth.set(4e12, "test", "now");
  m.rates.launch.set(2e-6, "test", "now");
  for (const int64_t a : {512, 2048, 8192})
    for (const int64_t b : {512, 2048, 8192})
      for (const int64_t c : {512, 2048, 8192}) {
        const double smallest = static_cast<double>(std::min({a, b, c}));
        m.rates.matmul.push_back({DType::bf16, DType::bf16, 2, a, b, c, 700e12 * smallest / (smallest + 500)});
      }
  for (const double bytes : {1e4, 1e6, 1e8})
    m.rates.memory_ops.push_back({OpKind::rmsnorm, DType::bf16, bytes, 3e12 * bytes / (bytes + 1e6)});
  for (const int64_t tokens : {512, 2048, 8192})
    m.rates.attention.push_back(
        {false, DType::bf16, 32, tokens, 128, 400e12 * static_cast<double>(tokens) / (static_cast<double>(tokens) + 1000)});
  m.links.node.bytes_per_s.set(400e9, "test", "now");
  m.links.node.latency.set(2e-6, "test", "now");
  m.links.network.bytes_per_s.set(100e9, "test", "now");
  m.links.network.latency.set(10e-6, "test", "now");
  return m;
}

TEST(MachineClock, IsExactAtMeasuredRows) {
  const Machine m = measured_machine();
  const MachineClock clock(m, {});
  for (const MatmulRow& r : m.rates.matmul) {
    const TracedOp o = product(r.m, r.n, r.k);
    EXPECT_DOUBLE_EQ(clock.op(o), std::max({o.flops / r.flops_per_s, 2e-6, o.bytes / 4e12}));
  }
  for (const MemoryRow& r : m.rates.memory_ops)
    EXPECT_DOUBLE_EQ(clock.op(plain(OpKind::rmsnorm, r.bytes)), std::max(2e-6, r.bytes / r.bytes_per_s));
  const AttentionRow& a = m.rates.attention[1];
  TracedOp o{.kind = static_cast<uint8_t>(OpKind::attention), .dims = {a.heads, a.tokens, a.head_dim}, .flops = 1e12};
  o.dtype = static_cast<uint8_t>(DType::bf16);
  EXPECT_DOUBLE_EQ(clock.op(o), 1e12 / a.flops_per_s);
}

TEST(MachineClock, LargerOpsTakeLongerAndNoneBeatsThePeak) {
  const Machine m = measured_machine();
  const MachineClock clock(m, {});
  for (int grown = 0; grown < 3; ++grown) {
    double before = 0;
    for (double size = 64; size < 40000; size *= 1.07) {
      std::array<int64_t, 3> d = {3000, 3000, 3000};
      d[static_cast<size_t>(grown)] = static_cast<int64_t>(size);
      const TracedOp o = product(d[0], d[1], d[2]);
      EXPECT_GE(clock.op(o), before) << d[0] << " x " << d[1] << " x " << d[2];
      EXPECT_GE(clock.op(o), o.flops / 1000e12);
      before = clock.op(o);
    }
  }
  double before = 0;
  for (double bytes = 1; bytes < 1e11; bytes *= 1.3) {
    EXPECT_GE(clock.op(plain(OpKind::rmsnorm, bytes)), before);
    before = clock.op(plain(OpKind::rmsnorm, bytes));
  }
}

TEST(MachineClock, RatesLieBetweenThoseOfTheRows) {
  const Machine m = measured_machine();
  const MachineClock clock(m, {});
  const TracedOp o = product(1000, 3000, 5000);
  const double rate = o.flops / clock.op(o);
  EXPECT_GT(rate, 700e12 * 512 / 1012);
  EXPECT_LT(rate, 700e12 * 8192 / 8692);
  // A single row holds for all sizes; a measured rate above the peak does not.
  Machine one = m;
  one.rates.matmul = {{DType::bf16, DType::bf16, 2, 512, 512, 512, 5000e12}};
  EXPECT_DOUBLE_EQ(MachineClock(one, {}).op(product(8192, 8192, 8192)), 2 * std::pow(8192.0, 3) / 1000e12);
}

TEST(MachineClock, WithoutRowsSharesHoldAndAreAskedFor) {
  Machine m = measured_machine();
  const TracedOp weights = product(4096, 4096, 4096, DType::f32, 5);
  // Another form of the type stands in.
  EXPECT_GT(MachineClock(m, {}).op(weights), 0);
  m.rates = {};
  const MachineClock clock(m, {});
  try {
    clock.op(weights);
    FAIL() << "a share was invented";
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("m.yaml: rates.matmul_share is empty"), std::string::npos) << e.what();
  }
  m.rates.matmul_share.set(0.5, "fitted to a test", "now");
  m.rates.bandwidth_share.set(0.5, "fitted to a test", "now");
  EXPECT_DOUBLE_EQ(clock.op(weights), weights.flops / 500e12);
  EXPECT_DOUBLE_EQ(clock.op(plain(OpKind::swiglu, 4e9)), 2e-3);
  EXPECT_DOUBLE_EQ(clock.op(product(1, 8192, 8192)), product(1, 8192, 8192).bytes / 4e12);  // bound by the weights' bytes
}

// A share of products in bf16 says nothing of tensor cores that multiply FP8.
TEST(MachineClock, ProductsOfFp8HaveRatesOfTheirOwn) {
  Machine m = measured_machine();
  m.capability = 90;
  m.rates.matmul_share.set(0.5, "fitted to a test", "now");
  TracedOp o = product(4096, 4096, 4096);
  o.dtype = static_cast<uint8_t>(DType::f8e4m3);
  const MachineClock clock(m, {});
  const auto asked = [&] {
    try {
      clock.op(o);
    } catch (const UsageError& e) {
      return std::string(e.what());
    }
    return std::string("a rate was invented");
  };
  EXPECT_NE(asked().find("m.yaml: rates.fp8_share is empty"), std::string::npos) << asked();
  m.rates.fp8_share.set(0.5, "fitted to a test", "now");
  EXPECT_NE(asked().find("m.yaml: peak.fp8 is empty"), std::string::npos) << asked();
  m.peak_fp8.set(2000e12, "test", "now");
  EXPECT_DOUBLE_EQ(clock.op(o), o.flops / 1000e12 + m.rates.launch.value.value_or(0));
  StepTrace trace;
  trace.op(o);
  const std::vector<std::string> lines = clock.estimates({&trace});
  EXPECT_NE(lines.at(0).find("products of FP8, 100.0 % of the time of ops: rates.fp8_share = 0.5"), std::string::npos) << lines[0];
  // Rows with the same sums go before others, those of the other FP8 type before the share.
  m.rates.matmul.push_back({DType::f8e5m2, DType::bf16, 2, 4096, 4096, 4096, 900e12});
  EXPECT_DOUBLE_EQ(clock.op(o), o.flops / 900e12);
  m.rates.matmul.push_back({DType::f8e4m3, DType::bf16, 2 | 8, 4096, 4096, 4096, 1200e12});
  EXPECT_DOUBLE_EQ(clock.op(o), o.flops / 1200e12);
  m.rates.matmul.push_back({DType::f8e4m3, DType::bf16, 2 | 4, 4096, 4096, 4096, 800e12});
  EXPECT_DOUBLE_EQ(clock.op(o), o.flops / 800e12);
  o.form = 2 | 8;
  EXPECT_DOUBLE_EQ(clock.op(o), o.flops / 1200e12);
}

// Where the hardware has no products of FP8 hlat widens both operands to bf16, so the rates of bf16 tell the time.
TEST(MachineClock, ProductsOfFp8AreThoseOfBf16WhereTheyAreEmulated) {
  Machine gpu = measured_machine();
  gpu.capability = 80;
  gpu.rates.memory_ops = {{OpKind::quantize, DType::bf16, 1e6, 2e12}};
  Machine host = gpu, other = gpu;
  host.capability = 0, host.cores = 4, host.ranks_per_node = 0;
  other.capability = 0;  // its file has no peak.fp8
  const int64_t rows = 3000, columns = 1008, sum = 5008;
  for (const DType type : {DType::f8e4m3, DType::f8e5m2})
    for (const uint8_t form : {uint8_t{2}, uint8_t{2 | 4}, uint8_t{2 | 8}}) {
      TracedOp o = product(rows, columns, sum, DType::bf16, form);
      const TracedOp wide = product(rows, columns, sum, DType::bf16, static_cast<uint8_t>(form & 7));
      o.dtype = static_cast<uint8_t>(type);
      o.bytes = wide.bytes - static_cast<double>((rows + columns) * sum);  // a byte less for each element of the operands
      for (const Machine& m : {gpu, host, other}) {
        const MachineClock clock(m, {});
        const double widened = clock.op(plain(OpKind::quantize, 3.0 * rows * sum)) + clock.op(plain(OpKind::quantize, 3.0 * columns * sum));
        EXPECT_DOUBLE_EQ(clock.op(o), clock.op(wide) + widened) << name_of(type) << " " << int{form};
      }
    }
  // A row of FP8 that was measured there holds as it is.
  TracedOp o = product(4096, 4096, 4096);
  o.dtype = static_cast<uint8_t>(DType::f8e4m3);
  gpu.rates.matmul.push_back({DType::f8e4m3, DType::bf16, 2, 4096, 4096, 4096, 150e12});
  EXPECT_DOUBLE_EQ(MachineClock(gpu, {}).op(o), o.flops / 150e12);
}

TEST(MachineClock, EmulatedFp8AsksForWhatBf16Needs) {
  Machine m = measured_machine();
  m.rates = {};
  const MachineClock clock(m, {});
  TracedOp o = product(4096, 4096, 4096);
  o.dtype = static_cast<uint8_t>(DType::f8e4m3);
  const auto asked = [&] {
    try {
      clock.op(o);
    } catch (const UsageError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(asked().find("m.yaml: rates.bandwidth_share is empty"), std::string::npos) << asked();
  m.rates.bandwidth_share.set(0.5, "fitted to a test", "now");
  EXPECT_NE(asked().find("m.yaml: rates.matmul_share is empty"), std::string::npos) << asked();
  m.rates.matmul_share.set(0.5, "fitted to a test", "now");
  EXPECT_EQ(asked(), "");
  StepTrace trace;
  trace.op(o);
  const std::vector<std::string> lines = clock.estimates({&trace});
  const double widened = 2 * 3 * 4096.0 * 4096 / 2e12, percent = 100 * widened / clock.op(o);
  EXPECT_EQ(lines.at(0),
            fmt::format("other ops, {:.1f} % of the time of ops: rates.bandwidth_share = 0.5 (fitted to a test, now)", percent));
  EXPECT_EQ(lines.at(1),
            fmt::format("products, {:.1f} % of the time of ops: rates.matmul_share = 0.5 (fitted to a test, now)", 100 - percent));
  EXPECT_EQ(lines.at(2),
            "products of FP8, 100.0 % of the time of ops: emulated, operands become bf16 and are multiplied as such; MFU is against "
            "peak.bf16");
}

TEST(GroupPlace, FollowsRankOrder) {
  using P = GroupPlace;
  // tp 8 fills a node, dp goes across: all 8 ranks of a node have a group of their own that leaves it.
  const MeshShape dense{.tp = 8, .pp = 1, .dp = 4};
  EXPECT_EQ(place_group(dense, Axis::tp, 8), (P{.size = 8, .nodes = 1, .per_node = 8, .sharing = 1}));
  EXPECT_EQ(place_group(dense, Axis::dp, 8), (P{.size = 4, .nodes = 4, .per_node = 1, .sharing = 8}));
  // tp 32 over 4 nodes of 8 has the network for itself.
  EXPECT_EQ(place_group({.tp = 32, .pp = 2, .dp = 1}, Axis::tp, 8), (P{.size = 32, .nodes = 4, .per_node = 8, .sharing = 1}));
  // tp 2, dp 8: four ranks of a dp group on each node, two groups.
  EXPECT_EQ(place_group({.tp = 2, .pp = 1, .dp = 8}, Axis::dp, 8), (P{.size = 8, .nodes = 2, .per_node = 4, .sharing = 2}));
  // HLAT-70B: 32 x 8 x 32 on nodes of 32.
  const MeshShape big{.tp = 32, .pp = 8, .dp = 32};
  EXPECT_EQ(place_group(big, Axis::tp, 32), (P{.size = 32, .nodes = 1, .per_node = 32, .sharing = 1}));
  EXPECT_EQ(place_group(big, Axis::dp, 32), (P{.size = 32, .nodes = 32, .per_node = 1, .sharing = 32}));
  EXPECT_EQ(place_group(big, Axis::kv, 32, 4), (P{.size = 4, .nodes = 1, .per_node = 4, .sharing = 1}));
  EXPECT_EQ(place_group(big, Axis::ends, 32), (P{.size = 2, .nodes = 2, .per_node = 1, .sharing = 32}));
  EXPECT_EQ(crossing_messages(big, 32), 32);
  EXPECT_EQ(crossing_messages({.tp = 2, .pp = 2, .dp = 2}, 8), 0);
  EXPECT_EQ(place_group(dense, Axis::dp, 0), (P{.size = 4, .nodes = 1, .per_node = 4, .sharing = 1}));
}

TEST(MachineClock, CollectivesFollowTheirLinks) {
  const Machine m = measured_machine();
  const ClockLayout layout{.shape = {.tp = 8, .pp = 1, .dp = 4}};
  const MachineClock clock(m, layout);
  const double bytes = 1e9;
  EXPECT_DOUBLE_EQ(clock.call(collective(Axis::tp, CommKind::all_reduce, bytes)), 2 * (7.0 / 8 * bytes / 400e9 + 7 * 2e-6));
  EXPECT_DOUBLE_EQ(clock.call(collective(Axis::tp, CommKind::all_gather, bytes)), 7.0 / 8 * bytes / 400e9 + 7 * 2e-6);
  // Eight groups share a node's network.
  EXPECT_DOUBLE_EQ(clock.call(collective(Axis::dp, CommKind::reduce_scatter, bytes)), 3.0 / 4 * bytes / (100e9 / 8) + 3 * 10e-6);
  EXPECT_GT(clock.call(collective(Axis::dp, CommKind::barrier, 0)), 0);
  // With several ranks on each of several nodes small sums go by levels and large ones round the ring.
  const GroupPlace wide{.size = 32, .nodes = 4, .per_node = 8, .sharing = 1};
  EXPECT_DOUBLE_EQ(device_collective(m, CommKind::all_gather, 0, wide), 7 * 2e-6 + 3 * 10e-6);
  EXPECT_NEAR(device_collective(m, CommKind::all_gather, 1e12, wide), 31.0 / 32 * 1e12 / 100e9, 1e-3);
  Machine tree = m;
  tree.links.algorithm = CollectiveAlgorithm::tree;
  EXPECT_DOUBLE_EQ(device_collective(tree, CommKind::all_reduce, 0, wide), 2 * (3 * 2e-6 + 2 * 10e-6));
  tree.links.algorithm = CollectiveAlgorithm::fastest;
  for (const double b : {1e2, 1e5, 1e8})
    EXPECT_LE(device_collective(tree, CommKind::all_reduce, b, wide), device_collective(m, CommKind::all_reduce, b, wide));
  EXPECT_EQ(device_collective(m, CommKind::all_reduce, bytes, {}), 0);
}

TEST(MachineClock, MeasuredCollectivesHoldForTheirRanks) {
  Machine m = measured_machine();
  m.links.measured = {{CommKind::all_reduce, 4, 1e4, 1e-4}, {CommKind::all_reduce, 4, 1e6, 1e-3}, {CommKind::send, 2, 1e6, 5e-4}};
  const MachineClock clock(m, {.shape = {.tp = 4, .pp = 1, .dp = 2}});
  EXPECT_DOUBLE_EQ(clock.call(collective(Axis::tp, CommKind::all_reduce, 1e6)), 1e-3);
  EXPECT_DOUBLE_EQ(clock.call(collective(Axis::tp, CommKind::all_reduce, 1)), 1e-4);
  EXPECT_DOUBLE_EQ(clock.call(collective(Axis::tp, CommKind::all_reduce, 2e7)), 2e-2);
  EXPECT_NEAR(clock.call(collective(Axis::tp, CommKind::all_reduce, 1e5)), std::sqrt(1e-7), 1e-12);
  // Not for other kinds and other sizes of groups.
  EXPECT_DOUBLE_EQ(clock.call(collective(Axis::tp, CommKind::all_gather, 1e6)), 3.0 / 4 * 1e6 / 400e9 + 3 * 2e-6);
  EXPECT_DOUBLE_EQ(clock.call(collective(Axis::dp, CommKind::all_reduce, 1e6)), 2 * (1.0 / 2 * 1e6 / 400e9 + 2e-6));
  EXPECT_DOUBLE_EQ(MachineClock(m, {.shape = {.tp = 1, .pp = 4, .dp = 1}}).message(collective(Axis::pp, CommKind::send, 1e6)).seconds,
                   5e-4);
}

TEST(MachineClock, EmptyLinksAreAskedForOnlyWhereTheyAreUsed) {
  Machine m = measured_machine();
  m.links.network.bytes_per_s.value.reset();
  const MachineClock clock(m, {.shape = {.tp = 8, .pp = 1, .dp = 2}});
  EXPECT_GT(clock.call(collective(Axis::tp, CommKind::all_reduce, 1e6)), 0);
  EXPECT_THROW(clock.call(collective(Axis::dp, CommKind::all_reduce, 1e6)), UsageError);
}

TEST(MachineClock, MessagesThatLeaveANodeShareItsNetwork) {
  const Machine m = measured_machine();
  const TracedCall c = collective(Axis::pp, CommKind::send, 1e8);
  EXPECT_DOUBLE_EQ(MachineClock(m, {.shape = {.tp = 4, .pp = 2, .dp = 1}}).message(c).seconds, 1e8 / 400e9);
  const StepClock::Transfer far = MachineClock(m, {.shape = {.tp = 8, .pp = 2, .dp = 1}}).message(c);
  EXPECT_DOUBLE_EQ(far.seconds, 8 * 1e8 / 100e9);
  EXPECT_DOUBLE_EQ(far.latency, 10e-6);
}

TEST(MachineClock, HostCoresSendAndSum) {
  Machine m = measured_machine();
  m.cores = 4;
  m.ranks_per_node = 0;
  m.links.sum_bytes_per_s.set(5e9, "test", "now");
  m.links.node.bytes_per_s.set(4e9, "test", "now");
  m.rates.memory_ops = {{OpKind::add, DType::bf16, 1e6, 1e9}};
  const MachineClock clock(m, {.shape = {.tp = 2, .pp = 1, .dp = 2}});
  EXPECT_EQ(clock.threads(), 1);
  EXPECT_DOUBLE_EQ(clock.call(collective(Axis::tp, CommKind::all_gather, 8e6)), 2e-6 + 4e6 / 4e9);
  // A small sum: each sends all to the other and adds two terms.
  EXPECT_DOUBLE_EQ(clock.call(collective(Axis::tp, CommKind::all_reduce, 4000)), 2e-6 + 4000 / 4e9 + 8000 / 5e9);
  EXPECT_NEAR(clock.call(collective(Axis::tp, CommKind::all_reduce, 8e8)), 8e8 / 4e9 + 8e8 / 5e9, 0.01);
  // Half the ranks have twice the threads, and the time of an op is half.
  const MachineClock fewer(m, {.shape = {.tp = 2, .pp = 1, .dp = 1}});
  EXPECT_EQ(fewer.threads(), 2);
  EXPECT_DOUBLE_EQ(fewer.op(plain(OpKind::add, 1e6)), clock.op(plain(OpKind::add, 1e6)) / 2);
}

// Four threads keep half of what four times the speed would be; two, as halfway in the logarithm, keep the root of it.
TEST(MachineClock, MoreThreadsKeepTheirMeasuredShare) {
  Machine m = measured_machine();
  m.cores = 8;
  m.ranks_per_node = 0;
  m.threads = 2;
  m.rates.memory_ops = {{OpKind::add, DType::bf16, 1e6, 1e9}};
  const auto seconds = [&](int threads, const TracedOp& op) { return MachineClock(m, {.shape = {}, .threads = threads}).op(op); };
  const auto said = [&](int threads) {
    const std::vector<std::string> lines = MachineClock(m, {.shape = {}, .threads = threads}).estimates({});
    return lines.empty() ? "" : lines.back();
  };
  const TracedOp add = plain(OpKind::add, 1e6), mul = product(2048, 2048, 2048);
  const double measured = seconds(2, mul);
  EXPECT_DOUBLE_EQ(seconds(8, mul), measured / 4);
  EXPECT_EQ(said(8), "rates are of 2 threads a rank, this layout has 8: taken in proportion");
  m.rates.thread_share.threads = 8;
  m.rates.thread_share.products.set(0.81, "a test", "now");
  m.rates.thread_share.others.set(0.25, "a test", "now");
  EXPECT_DOUBLE_EQ(seconds(2, mul), measured);
  EXPECT_DOUBLE_EQ(seconds(8, mul), measured / 4 / 0.81);
  EXPECT_DOUBLE_EQ(seconds(4, mul), measured / 2 / 0.9);
  EXPECT_DOUBLE_EQ(seconds(1, mul), measured * 2 * 0.9);
  EXPECT_DOUBLE_EQ(seconds(8, add), 1e-3);
  EXPECT_DOUBLE_EQ(seconds(4, add), 1e-3);
  EXPECT_EQ(
      said(4),
      "rates are of 2 threads a rank, this layout has 4: taken in proportion, products x 0.900, other ops x 0.500 (rates.thread_share "
      "of 8 threads: a test, now)");
  EXPECT_EQ(said(2).find("threads"), std::string::npos);
}

// A real step: every op of the trace has a time, and what is estimated is said.
TEST(MachineClock, TellsAStepAndWhatIsEstimatedOfIt) {
  Config config;
  config.train.precision = PrecisionKind::mixed;
  config.parallel.dp = 1;
  StepTrace trace;
  dry_run(config, {}, 0, &trace);
  Machine m = measured_machine();
  m.rates.bandwidth_share.set(0.8, "fitted to a test", "2026");
  m.rates.attention_share.set(0.4, "fitted to a test", "2026");
  const MachineClock clock(m, layout_of(config));
  const StepTime t = simulate({&trace}, {}, clock);
  EXPECT_GT(t.seconds, 0);
  const std::vector<std::string> lines = clock.estimates({&trace});
  const auto says = [&](const std::string& part) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& l) { return l.find(part) != std::string::npos; });
  };
  EXPECT_TRUE(says("rates.bandwidth_share = 0.8 (fitted to a test, 2026)"));
  EXPECT_TRUE(says("products") && says("rates of other forms"));
  EXPECT_TRUE(says("step_overhead is empty and counts as nothing"));
  EXPECT_FALSE(says("links.node.latency"));
}

}  // namespace
}  // namespace hlat::test
