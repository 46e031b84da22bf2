// Learning-rate schedules and what the parameter store declares.
#include <gtest/gtest.h>

#include <cmath>

#include "config/load.h"
#include "model/llama.h"
#include "optim/learning_rate.h"
#include "support/one_rank.h"
#include "support/paths.h"

namespace hlat {
namespace {

OptimConfig hlat_optim(ScheduleKind kind) {
  OptimConfig o;
  o.lr = 3e-4;
  o.schedule = kind;
  o.warmup = 2000;
  o.min_ratio = 0.1;
  return o;
}

TEST(Schedule, WarmsUpLinearlyFromZero) {
  for (const ScheduleKind kind : {ScheduleKind::cosine_clamped, ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::constant,
                                  ScheduleKind::warmup_stable_decay}) {
    const OptimConfig o = hlat_optim(kind);
    EXPECT_DOUBLE_EQ(learning_rate(o, 1, 500000), 3e-4 / 2000);
    EXPECT_DOUBLE_EQ(learning_rate(o, 1000, 500000), 1.5e-4);
    EXPECT_DOUBLE_EQ(learning_rate(o, 2000, 500000), 3e-4);
  }
}

// HLAT's clamp bites at 397,993.9 of 500,000 steps: 2000 + 498000 acos(-0.8) / pi.
TEST(Schedule, ClampedCosineReachesItsFloorWhereHlatDid) {
  const OptimConfig o = hlat_optim(ScheduleKind::cosine_clamped);
  EXPECT_GT(learning_rate(o, 397993, 500000), 3e-5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 397994, 500000), 3e-5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 500000, 500000), 3e-5);
  EXPECT_NEAR(learning_rate(o, 251000, 500000), 1.5e-4, 1e-12);
}

TEST(Schedule, EndsAndMiddles) {
  EXPECT_NEAR(learning_rate(hlat_optim(ScheduleKind::cosine), 251000, 500000), 3e-4 * 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(hlat_optim(ScheduleKind::cosine), 500000, 500000), 3e-5, 1e-15);
  EXPECT_NEAR(learning_rate(hlat_optim(ScheduleKind::linear), 251000, 500000), 3e-4 * 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(hlat_optim(ScheduleKind::linear), 600000, 500000), 3e-5, 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate(hlat_optim(ScheduleKind::constant), 499999, 500000), 3e-4);
  const OptimConfig wsd = hlat_optim(ScheduleKind::warmup_stable_decay);
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 450000, 500000), 3e-4);
  EXPECT_NEAR(learning_rate(wsd, 475000, 500000), 3e-4 * 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(wsd, 500000, 500000), 3e-5, 1e-15);
}

double expected_norm(const Config& c, int64_t& parameters) {
  const Llama model(with_one_rank(c), one_rank(c));
  double squares = 0;
  parameters = 0;
  for (const ParamSpec& s : model.specs()) {
    parameters += s.slice.global.numel();
    squares += static_cast<double>(s.slice.global.numel()) * (s.init_std == 0 ? 1.0 : s.init_std * s.init_std);
  }
  return std::sqrt(squares);
}

// The expected norm of the declared distributions; that the generator follows them is tested with the ops.
TEST(Init, HlatShapesHaveThePublishedSizeAndNorm) {
  int64_t parameters = 0;
  const Config small = load_config(test::source_path("configs/hlat-7b.yaml")).config;
  EXPECT_NEAR(expected_norm(small, parameters), 1542, 0.5);
  EXPECT_EQ(parameters, 6738415616);
  const Config large = load_config(test::source_path("configs/hlat-70b.yaml")).config;
  // By hand: 0.02^2 of embedding, head, qkv, gate and up; 0.02^2 / 160 of the output projections; norms of one.
  const double wide = 2.0 * 32000 * 8192 + 80.0 * 8192 * (8192 + 2 * 1024 + 2 * 28672), out = 80.0 * 8192 * (8192 + 28672),
               ones = 161.0 * 8192;
  EXPECT_NEAR(expected_norm(large, parameters), std::sqrt(4e-4 * (wide + out / 160) + ones), 1e-6);
  EXPECT_NEAR(expected_norm(large, parameters), 4393.83, 0.01);
  EXPECT_EQ(parameters, 68976648192);
}

TEST(Init, DecayOnNormsFollowsTheConfig) {
  Config c;
  for (const bool decay : {true, false}) {
    c.optim.decay_norms = decay;
    const Llama model(c, one_rank(c));
    for (const ParamSpec& s : model.specs()) EXPECT_EQ(s.decay, decay || s.slice.global.rank == 2) << s.name;
  }
}

TEST(Flops, AreCountedAsTheDesignSays) {
  const Config c = load_config(test::source_path("configs/llama-134m.yaml")).config;
  const double matmul = 12.0 * (4 * 768.0 * 768 + 3 * 768.0 * 2048) + 32000.0 * 768;
  EXPECT_DOUBLE_EQ(model_flops_per_token(c.model, 1024), 6 * matmul + 6 * 12.0 * 768 * 1024);
}

}  // namespace
}  // namespace hlat
