// The simulator against what is known without it: bubbles of schedules, sums of compute, traffic of the dry run, monotony.
#include "plan/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "comm/comm.h"
#include "comm/shares.h"
#include "plan/dry_run.h"
#include "plan/step_shapes.h"

namespace hlat::test {
namespace {

// Only products and attention cost, and those of the head nothing: all blocks are alike.
class BlockClock final : public TestClock {
 public:
  explicit BlockClock(int64_t vocab) : vocab_(vocab) {}
  double op(const TracedOp& o) const override {
    const auto kind = static_cast<OpKind>(o.kind);
    if (kind == OpKind::matmul && std::find(o.dims.begin(), o.dims.end(), vocab_) != o.dims.end()) return 0;
    return kind == OpKind::matmul || kind == OpKind::attention || kind == OpKind::attention_bwd ? o.flops * flop_s : 0;
  }

 private:
  int64_t vocab_;
};

struct Played {
  std::vector<StepTrace> traces;
  std::vector<RankPlan> plans;
  StepTime time;
};

Played play(const Config& config, const StepClock& clock, bool spans = false) {
  const MeshShape mesh = mesh_shape(config.parallel);
  Played p;
  p.traces.resize(static_cast<size_t>(mesh.pp));
  std::vector<const StepTrace*> stages;
  for (int s = 0; s < mesh.pp; ++s) {
    StepTrace& trace = p.traces[static_cast<size_t>(s)];
    p.plans.push_back(dry_run(config, {}, rank_of({.pp = s}, mesh), &trace));
    stages.push_back(&trace);
  }
  p.time = simulate(stages, mesh, clock, spans);
  return p;
}

TEST(Simulate, OneRankTakesTheSumOfItsOps) {
  TestClock clock;
  clock.byte_s = 1e-10;
  const Played p = play(small_step(1, 1, 1, 3), clock);
  double expected = 0;
  for (int k = 0; k < kOpKinds; ++k) {
    const OpCost& c = p.plans[0].cost[static_cast<OpKind>(k)];
    expected += c.flops * clock.flop_s + c.bytes * clock.byte_s;
    EXPECT_NEAR(p.time.stages[0].compute[static_cast<size_t>(k)], c.flops * clock.flop_s + c.bytes * clock.byte_s, 1e-12) << k;
  }
  EXPECT_NEAR(p.time.seconds, expected, 1e-9 * expected);
  EXPECT_EQ(p.time.stages[0].bubble, 0);
}

TEST(Simulate, TracingChangesNoPlan) {
  for (const auto& [tp, pp, dp] : {std::tuple{2, 2, 2}, {4, 1, 2}, {1, 4, 1}}) {
    const Config c = small_step(tp, pp, dp, 8);
    StepTrace trace;
    const RankPlan with = dry_run(c, {}, 0, &trace), without = dry_run(c, {}, 0);
    EXPECT_EQ(with.memory.total(), without.memory.total());
    EXPECT_EQ(with.executed_flops(), without.executed_flops());
    for (size_t a = 0; a < with.traffic.size(); ++a)
      EXPECT_EQ(with.traffic[a].traffic.bytes_sent(), without.traffic[a].traffic.bytes_sent()) << with.traffic[a].axis;
  }
}

// (m + p - 1) passes instead of m: the known bubble of 1F1B, and (p - 1) / v of interleaved chunks.
TEST(Simulate, BubblesAreThoseOfTheory) {
  const BlockClock clock(257);
  for (const int pp : {2, 4})
    for (const int micros : {4, 8, 16})
      for (const int chunks : {1, 2}) {
        const Config c = small_step(1, pp, 1, micros, chunks);
        const Played p = play(c, clock);
        const double pass = p.time.stages[0].computed() / micros;  // forward and backward of one micro-batch on one stage
        for (const StageTime& s : p.time.stages) EXPECT_NEAR(s.computed(), micros * pass, 1e-9 * micros * pass);
        const double theory = pass * (micros + (pp - 1) / static_cast<double>(chunks));
        EXPECT_NEAR(p.time.seconds, theory, 1e-9 * theory) << "pp " << pp << ", " << micros << " micro-batches, " << chunks << " chunks";
        for (const StageTime& s : p.time.stages) EXPECT_NEAR(s.bubble, theory - micros * pass, 1e-9 * theory);
      }
}

// What the lists move is what the groups count: by axis, with the bytes that a collective of messages sends.
TEST(Simulate, BytesAreTheTrafficOfTheDryRun) {
  for (const bool sequence : {false, true}) {
    Config c = small_step(4, 2, 2, 4);
    c.parallel.sequence = sequence;
    const Played p = play(c, TestClock());
    for (size_t s = 0; s < p.traces.size(); ++s) {
      std::array<double, kAxes> sent{};
      for (const TraceEntry& e : p.traces[s].entries()) {
        if (e.kind != TraceKind::call && e.kind != TraceKind::queued && e.kind != TraceKind::send) continue;
        const TracedCall& call = p.traces[s].calls()[e.index];
        const double n = p.plans[s].traffic[call.group].size;
        switch (static_cast<CommKind>(call.kind)) {
          case CommKind::all_reduce:
            sent[call.group] += call.bytes <= kSmallSum ? (n - 1) * call.bytes : 2 * call.bytes * (n - 1) / n;
            break;
          case CommKind::reduce_scatter:
          case CommKind::all_gather: sent[call.group] += call.bytes * (n - 1) / n; break;
          case CommKind::send: sent[call.group] += call.bytes; break;
          default: break;
        }
      }
      for (const Axis axis : {Axis::tp, Axis::pp, Axis::dp}) {
        const Traffic& t = p.plans[s].traffic[static_cast<size_t>(axis)].traffic;
        const double expected = t.bytes_sent() - t[CommKind::broadcast].bytes;  // token ids, which a tree of ranks hands on
        EXPECT_GT(expected, 0);
        EXPECT_NEAR(sent[static_cast<size_t>(axis)], expected, 1e-3 * expected) << name_of(axis) << " of stage " << s;  // uneven shares
      }
    }
  }
}

TEST(Simulate, MoreBandwidthNeverSlowsAPlan) {
  for (const auto& [tp, pp, dp, chunks] : {std::tuple{2, 2, 2, 1}, {1, 4, 2, 2}, {4, 1, 2, 1}, {1, 2, 4, 2}}) {
    double before = INFINITY;
    for (const double bandwidth : {1e6, 1e7, 1e8, 1e9, 1e10}) {
      TestClock clock;
      clock.latency = 1e-6;
      clock.bandwidth = bandwidth;
      const double now = play(small_step(tp, pp, dp, 8, chunks), clock).time.seconds;
      EXPECT_LE(now, before * (1 + 1e-12)) << "tp " << tp << " pp " << pp << " dp " << dp << ", " << bandwidth;
      before = now;
    }
  }
}

// Every second of a stage is in exactly one line of its account.
TEST(Simulate, TheAccountOfAStageSumsUp) {
  TestClock clock;
  clock.latency = 3e-6;
  clock.bandwidth = 3e7;
  for (const int cores : {0, 2}) {
    clock.shared_cores = cores;
    const Played p = play(small_step(2, 2, 2, 8), clock, true);
    for (const StageTime& s : p.time.stages) {
      double sum = s.computed() + s.bubble + s.slowed;
      for (const double e : s.exposed) sum += e;
      EXPECT_NEAR(sum, p.time.seconds, 1e-9 * p.time.seconds);
    }
    EXPECT_GT(p.time.stages[0].exposed[static_cast<size_t>(Axis::dp)] + p.time.stages[0].queued, 0);
    EXPECT_FALSE(p.time.spans.empty());
    for (const SimSpan& span : p.time.spans) EXPECT_LT(span.begin, span.end);
  }
}

// Eight ranks on two cores take four times as long as on a core each, as long as all have something to do.
TEST(Simulate, CoresAreShared) {
  TestClock clock;
  const double alone = play(small_step(1, 1, 8, 4), clock).time.seconds;
  clock.shared_cores = 2;
  EXPECT_NEAR(play(small_step(1, 1, 8, 4), clock).time.seconds, 4 * alone, 1e-9 * alone);
}

// Sums over dp run overlapped with the backward: of a slow link only what is left at the end is waited for.
TEST(Simulate, SumsOverDpOverlapWithTheBackward) {
  TestClock clock;
  clock.byte_s = 0;
  Config c = small_step(1, 1, 2, 1);
  c.model.hidden = 256;
  c.parallel.zero1 = false;
  c.parallel.bucket_mb = 1;
  const double compute = play(c, clock).time.seconds;
  clock.bandwidth = 1e9;
  const Played p = play(c, clock);
  EXPECT_GT(p.time.stages[0].queued, 0);
  EXPECT_LT(p.time.seconds, compute + 0.5 * p.time.stages[0].queued);
}

}  // namespace
}  // namespace hlat::test
