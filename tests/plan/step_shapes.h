// A clock and small configs for tests of the planner.
#pragma once

#include <cmath>

#include "config/config.h"
#include "plan/simulate.h"

namespace hlat::test {

// Ops take what the test says; links are endless unless it says more.
class TestClock : public StepClock {
 public:
  double flop_s = 1e-9, byte_s = 0;
  double bandwidth = INFINITY, latency = 0;
  int shared_cores = 0;
  double op(const TracedOp& o) const override { return o.flops * flop_s + o.bytes * byte_s; }
  double call(const TracedCall& c) const override { return latency + c.bytes / bandwidth; }
  Transfer message(const TracedCall& c) const override { return {latency, c.bytes / bandwidth}; }
  int cores() const override { return shared_cores; }
};

inline Config small_step(int tp, int pp, int dp, int micros, int chunks = 1) {
  Config c;
  c.model.layers = 8;
  c.model.hidden = 64;
  c.model.heads = 8;
  c.model.kv_heads = 4;
  c.model.ffn = 96;
  c.model.vocab = 257;
  c.train.seq_len = 32;
  c.train.micro_batch = 1;
  c.train.global_batch = micros * dp;
  c.parallel.tp = tp;
  c.parallel.pp = pp;
  c.parallel.dp = dp;
  c.parallel.chunks = chunks;
  return c;
}

}  // namespace hlat::test
