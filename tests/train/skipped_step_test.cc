// A step whose update is left out changes nothing of the state, on any layout, and the steps after it are those of one rank. A gate that
// lets every update pass leaves the bits of a run without one.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <mutex>

#include "base/failure_word.h"
#include "support/layout_run.h"
#include "support/layout_tolerance.h"
#include "support/message_of.h"
#include "support/real_run.h"

namespace hlat {
namespace {

std::string state_bytes(const ParamStore& params) {
  std::string all;
  for (const Bucket& b : params.buckets())
    for (const Tensor& t : {b.weight, b.master, b.m, b.v})
      if (t.defined()) all.append(static_cast<const char*>(t.data), t.bytes());
  return all;
}

// Steps 2 and 4 of five are skipped.
LayoutResult run_with_skips(const Config& config) {
  std::mutex mutex;
  std::map<const TrainStep*, std::string> before;
  return run_layout(config, 5, [&](TrainStep& train, int64_t step) {
    const std::string now = state_bytes(train.executor().params());
    const std::lock_guard lock(mutex);
    if (step == 1) train.before_updates([](int64_t s, double, double) { return s != 2 && s != 4; });
    if (step == 2 || step == 4) {
      EXPECT_TRUE(before[&train] == now) << "step " << step << " changed the state";
    } else if (step > 1) {
      EXPECT_FALSE(before[&train] == now) << "step " << step << " is no skipped one";
    }
    before[&train] = now;
  });
}

class SkippedStep : public testing::TestWithParam<Layout> {};

TEST_P(SkippedStep, IsTheSameOnEveryLayout) {
  const Config config = GetParam().config();
  Layout single = GetParam();
  single.tp = single.pp = single.dp = single.chunks = 1;
  single.sp = single.zero1 = false;
  const LayoutResult one = run_with_skips(single.config()), many = run_with_skips(config);
  expect_near(many.steps, one.steps, true);
  for (size_t i = 0; i < many.steps.size(); ++i) EXPECT_EQ(many.steps[i].skipped, i == 1 || i == 3);
  for (const auto& [name, values] : one.weights)
    EXPECT_LE(rms_difference(many.weights.at(name), values), most_rms_difference(true, config.optim.lr)) << name;
}

INSTANTIATE_TEST_SUITE_P(Layouts, SkippedStep,
                         testing::Values(Layout{.tp = 2}, Layout{.pp = 2}, Layout{.dp = 2}, Layout{.dp = 2, .zero1 = true},
                                         Layout{.tp = 2, .pp = 2, .dp = 2, .zero1 = true}),
                         [](const auto& i) { return i.param.name(); });

TEST(SkippedStep, AGateThatLetsAllPassLeavesTheBits) {
  for (const Layout& layout : {Layout{}, Layout{.dp = 2, .zero1 = true}}) {
    const LayoutResult plain = run_layout(layout.config(), 3);
    const LayoutResult gated = run_layout(
        layout.config(), 3, [](TrainStep& train, int64_t) { train.before_updates([](int64_t, double, double) { return true; }); });
    EXPECT_EQ(plain.weights, gated.weights);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(plain.steps[i].loss, gated.steps[i].loss);
      EXPECT_EQ(plain.steps[i].grad_norm, gated.steps[i].grad_norm);
      EXPECT_EQ(plain.steps[i].param_norm, gated.steps[i].param_norm);
    }
  }
}

// The loss of the step is what the gate is asked about.
TEST(SkippedStep, TheGateSeesLossAndNorm) {
  double loss = 0, norm = 0;
  const LayoutResult result = run_layout(Layout{.pp = 2}.config(), 2, [&](TrainStep& train, int64_t) {
    if (!train.executor().reads_batches() || train.executor().mesh().coord().pp != 0) {
      train.before_updates([](int64_t, double, double) { return true; });
      return;
    }
    train.before_updates([&](int64_t, double l, double n) {
      loss = l, norm = n;
      return true;
    });
  });
  EXPECT_EQ(loss, result.steps[1].loss);
  EXPECT_EQ(norm, result.steps[1].grad_norm);
}

// Health checks at a save: each kind of state that has a replica is compared.
TEST(CheckedState, ADifferenceInAnyKindIsNamed) {
  struct Case {
    Tensor Bucket::*kind;
    const char* words;
  };
  for (const Case& c : {Case{&Bucket::weight, "weights of"}, Case{&Bucket::m, "first moments of"}, Case{&Bucket::v, "second moments of"}}) {
    Config config = Layout{.dp = 2}.config();
    config.parallel.health_every = 100;
    const auto run = [&](bool harm) {
      run_layout(config, 2, [&](TrainStep& train, int64_t step) {
        const ParamStore& params = train.executor().params();
        if (harm && step == 2 && train.executor().mesh().coord().dp == 1)
          static_cast<unsigned char*>((params.buckets()[0].*c.kind).data)[5] ^= 1;
        if (step == 2) train.check_state(step);
      });
    };
    EXPECT_NO_THROW(run(false));
    try {
      run(true);
      ADD_FAILURE() << "nothing was found in " << c.words;
    } catch (const FailedStep& e) {
      EXPECT_EQ(e.kind, FailureKind::health);
      EXPECT_EQ(e.step, 2);
      EXPECT_NE(std::string(e.what()).find(c.words), std::string::npos) << e.what();
    }
  }
}

TEST(CheckedState, ShardsOfTheOptimizerHaveNoReplica) {
  Config config = Layout{.dp = 2, .zero1 = true}.config();
  config.parallel.health_every = 100;
  EXPECT_NO_THROW(run_layout(config, 2, [](TrainStep& train, int64_t step) { train.check_state(step); }));
}

}  // namespace
}  // namespace hlat
