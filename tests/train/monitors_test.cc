// What a step measures of itself: the same on every layout, true to numbers that are found another way, and without a trace in training.
#include "record/monitors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <numeric>

#include "ops/download.h"
#include "support/layout_run.h"
#include "support/precision_rows.h"
#include "support/real_run.h"
#include "support/ref_run.h"
#include "train/fp8_record.h"
#include "train/model_parts.h"

namespace hlat {
namespace {

Batch probe_batch(const Config& c) {
  Batch b(c.train.micro_batch, c.train.seq_len);
  for (size_t i = 0; i < b.inputs.size(); ++i)
    b.inputs[i] = b.targets[i] = static_cast<int32_t>((i * 7 + 3) % static_cast<size_t>(c.model.vocab));
  return b;
}

// Two steps, both measured, and a probe after the second.
LayoutResult run_monitored(Config c) {
  c.monitor.every = 1;
  c.monitor.positions = 4;
  c.data.sources = {{.name = "web", .path = "a"}, {.name = "code", .path = "b"}, {.name = "books", .path = "c"}};
  LayoutResult result;
  std::mutex mutex;
  Monitors probed;
  result = run_layout(c, 2, [&](TrainStep& step, int64_t number) {
    if (number != 2) return;
    const Batch batch = probe_batch(c);
    Monitors m;
    step.probe().run(step.executor().reads_batches() ? &batch : nullptr, m);
    const std::lock_guard lock(mutex);
    probed = m;
  });
  Monitors& m = *result.steps.back().monitors;
  m.probe_loss = probed.probe_loss, m.leak = probed.leak, m.drift = probed.drift, m.max_logit = probed.max_logit;
  return result;
}

void expect_lists(const char* what, const std::vector<double>& many, const std::vector<double>& one, double relative) {
  ASSERT_EQ(many.size(), one.size()) << what;
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(many[i], one[i], relative * std::abs(one[i]) + 1e-9) << what << " " << i;
}

class MonitorsOn : public ::testing::TestWithParam<Layout> {};

TEST_P(MonitorsOn, AreThoseOfOneRank) {
  Layout one = GetParam();
  one.tp = one.pp = one.dp = one.chunks = 1;
  one.sp = one.zero1 = false;
  const LayoutResult a = run_monitored(one.config()), b = run_monitored(GetParam().config());
  for (size_t step = 0; step < 2; ++step) {
    ASSERT_TRUE(a.steps[step].monitors && b.steps[step].monitors);
    const Monitors &x = *a.steps[step].monitors, &y = *b.steps[step].monitors;
    expect_lists("grad_norm", y.grad_norm, x.grad_norm, 1e-4);
    expect_lists("weight_norm", y.weight_norm, x.weight_norm, 1e-5);
    expect_lists("update_ratio", y.update_ratio, x.update_ratio, 1e-2);
    expect_lists("unchanged", y.unchanged, x.unchanged, 1e-2);
    expect_lists("max_activation", y.max_activation, x.max_activation, 1e-3);
    expect_lists("max_lse", y.max_lse, x.max_lse, 1e-3);
    expect_lists("max_logit", y.max_logit, x.max_logit, 1e-2);
    expect_lists("position_loss", y.position_loss, x.position_loss, 1e-5);
    ASSERT_EQ(x.source_loss.size(), 3u);
    ASSERT_EQ(y.source_loss.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(y.source_loss[i].first, x.source_loss[i].first);
      EXPECT_NEAR(y.source_loss[i].second, x.source_loss[i].second, 1e-5 * x.source_loss[i].second);
    }
    EXPECT_NEAR(y.moment1_max, x.moment1_max, 1e-3 * x.moment1_max);
    EXPECT_NEAR(y.moment2_max, x.moment2_max, 1e-3 * x.moment2_max);
    EXPECT_GT(y.moment2_min, 0);
    EXPECT_EQ(y.repetition, x.repetition);
    EXPECT_EQ(y.repeated_rows, 0);
    EXPECT_EQ(y.update_error, 0);
    EXPECT_NEAR(y.copy_baseline, x.copy_baseline, 1e-12);
    // Parts add up to the whole.
    const double squares = std::inner_product(y.grad_norm.begin(), y.grad_norm.end(), y.grad_norm.begin(), 0.0);
    EXPECT_NEAR(std::sqrt(squares), b.steps[step].grad_norm, 1e-9 * b.steps[step].grad_norm);
    const double weights = std::inner_product(y.weight_norm.begin(), y.weight_norm.end(), y.weight_norm.begin(), 0.0);
    EXPECT_NEAR(std::sqrt(weights), b.steps[step].param_norm, 1e-9 * b.steps[step].param_norm);
  }
  const Monitors &x = *a.steps[1].monitors, &y = *b.steps[1].monitors;
  EXPECT_NEAR(*y.probe_loss, *x.probe_loss, 1e-3 * *x.probe_loss);
  EXPECT_EQ(*y.leak, 0);
  EXPECT_FALSE(x.drift);
  EXPECT_EQ(y.drift.has_value(), GetParam().tp * GetParam().dp > 1);
  EXPECT_EQ(y.drift.value_or(0), 0);
  EXPECT_EQ(y.max_logit.size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(Layouts, MonitorsOn,
                         ::testing::Values(Layout{.tp = 2}, Layout{.tp = 2, .sp = true}, Layout{.pp = 2, .chunks = 2}, Layout{.dp = 2},
                                           Layout{.dp = 2, .zero1 = true}, Layout{.tp = 8, .kv = 1},
                                           Layout{.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .tied = true}),
                         [](const auto& p) { return p.param.name(); });

// Scales of the first step are declared, and too large for what such weights make; those of the second follow.
TEST(Monitors, CountWhatFp8CannotHold) {
  std::optional<Monitors> one;
  for (Layout l : {Layout{}, Layout{.tp = 2}, Layout{.tp = 2, .sp = true}, Layout{.pp = 2, .chunks = 2}, Layout{.dp = 2, .micro = 2},
                   Layout{.tp = 2, .dp = 2, .sp = true, .zero1 = true}}) {
    l.precision = PrecisionKind::fp8;
    Config c = l.config();
    c.model.init_std = 1;
    const LayoutResult run = run_monitored(c);
    const Monitors &first = *run.steps[0].monitors, &second = *run.steps[1].monitors;
    if (!one) one = first;
    ASSERT_EQ(first.fp8_saturated.size(), 3u);
    EXPECT_GT(first.fp8_saturated[0], 1e-3) << "inputs";
    EXPECT_LT(second.fp8_saturated[0], 1e-6) << "inputs";
    EXPECT_EQ(first.fp8_saturated[2], 0) << "weights";
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(first.fp8_saturated[i], one->fp8_saturated[i], 0.05 * one->fp8_saturated[i] + 1e-4) << l.name() << " " << i;
      EXPECT_NEAR(first.fp8_lost[i], one->fp8_lost[i], 0.05 * one->fp8_lost[i] + 1e-4) << l.name() << " " << i;
    }
  }
  EXPECT_TRUE(run_monitored(Layout{}.config()).steps[0].monitors->fp8_saturated.empty());
}

// Steps, and a probe between them, whose passes must not enter the scales of FP8.
TEST(Monitors, LeaveNoTraceInTraining) {
  std::vector<PrecisionChoice> rows = preset_rows();
  rows.push_back(hlat_7b_row());
  for (const PrecisionChoice& row : fp8_rows()) rows.push_back(row);
  for (const PrecisionChoice& precision : rows) {
    Config with = tiny_config();
    precision.apply(with);
    fit_fp8(with);
    with.monitor.every = 3;
    Config without = with;
    without.monitor.every = 0;
    RealRun a(with), b(without);
    const Batch batch = probe_batch(with);
    for (int64_t step = 1; step <= 7; ++step) {
      const StepResult x = a.step(step), y = b.step(step);
      EXPECT_EQ(x.loss, y.loss);
      EXPECT_EQ(x.grad_norm, y.grad_norm);
      EXPECT_EQ(x.param_norm, y.param_norm);
      EXPECT_EQ(x.monitors.has_value(), step % 3 == 0);
      EXPECT_FALSE(y.monitors);
      if (step % 6 != 0) continue;
      Monitors m;
      a.train().probe().run(&batch, m);
      EXPECT_EQ(*m.leak, 0) << precision.words();
    }
    EXPECT_TRUE(a.weight_bytes() == b.weight_bytes()) << precision.words();
    EXPECT_EQ(own_fp8(a.executor()), own_fp8(b.executor())) << precision.words() << ": scales, and what they follow from";
    a.check_used();
  }
}

// A measured step whose update is left out tells what FP8 could not hold, and scales learn from it as from one that is not measured.
TEST(Monitors, LeaveNoTraceWhereAStepIsSkipped) {
  for (const PrecisionChoice& precision : fp8_rows()) {
    Config with = tiny_config();
    precision.apply(with);
    fit_fp8(with);
    with.monitor.every = 2;
    Config without = with;
    without.monitor.every = 0;
    RealRun a(with), b(without);
    for (RealRun* run : {&a, &b}) run->train().before_updates([](int64_t step, double, double) { return step != 2 && step != 3; });
    for (int64_t step = 1; step <= 5; ++step) {
      const StepResult x = a.step(step), y = b.step(step);
      EXPECT_EQ(x.skipped, step == 2 || step == 3);
      EXPECT_EQ(x.loss, y.loss) << precision.words() << " step " << step;
      EXPECT_EQ(x.grad_norm, y.grad_norm) << precision.words() << " step " << step;
      EXPECT_EQ(x.monitors.has_value(), step % 2 == 0);
    }
    EXPECT_TRUE(a.weight_bytes() == b.weight_bytes()) << precision.words();
    EXPECT_NE(own_fp8(a.executor()), "");
    EXPECT_EQ(own_fp8(a.executor()), own_fp8(b.executor())) << precision.words();
  }
}

class MonitorsOnMesh : public ::testing::TestWithParam<Layout> {};

// What a measured step exchanges and a probe computes on several ranks, for policies with and without masters, noise and scales.
TEST_P(MonitorsOnMesh, LeaveNoTraceInTraining) {
  using enum PrecisionKind;
  for (const PrecisionChoice& precision : {PrecisionChoice{mixed}, {mixed_sr}, hlat_7b_row(), {fp8}, {fp8_sr}}) {
    Layout layout = GetParam();
    layout.precision = precision.preset;
    layout.choices = precision.choices;
    Config with = layout.config();
    with.monitor.every = 2;
    Config without = with;
    without.monitor.every = 0;
    std::mutex mutex;
    std::map<int, std::string> scales_with, scales_without;  // by rank
    const auto note_scales = [&](std::map<int, std::string>& scales, const Executor& executor) {
      const std::lock_guard lock(mutex);
      scales[rank_of(executor.mesh().coord(), executor.mesh().shape())] = own_fp8(executor);
    };
    const LayoutResult a = run_layout(with, 5, [&](TrainStep& step, int64_t number) {
      if (number == 5) note_scales(scales_with, step.executor());
      if (number % 2 != 0) return;
      const Batch batch = probe_batch(with);
      Monitors m;
      step.probe().run(step.executor().reads_batches() ? &batch : nullptr, m);
      EXPECT_EQ(*m.leak, 0) << layout.name();
    });
    const LayoutResult b = run_layout(without, 5, [&](TrainStep& step, int64_t number) {
      if (number == 5) note_scales(scales_without, step.executor());
    });
    EXPECT_EQ(scales_with, scales_without) << layout.name();
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(a.steps[i].loss, b.steps[i].loss) << layout.name() << " step " << i + 1;
      EXPECT_EQ(a.steps[i].grad_norm, b.steps[i].grad_norm) << layout.name() << " step " << i + 1;
      EXPECT_EQ(a.steps[i].param_norm, b.steps[i].param_norm) << layout.name() << " step " << i + 1;
      EXPECT_EQ(a.steps[i].monitors.has_value(), i % 2 == 1);
      EXPECT_FALSE(b.steps[i].monitors);
    }
    EXPECT_TRUE(a.gradients == b.gradients) << layout.name();
    EXPECT_TRUE(a.weights == b.weights) << layout.name();
    EXPECT_TRUE(a.masters == b.masters) << layout.name();
    EXPECT_FALSE(a.weights == a.initial) << layout.name() << ": nothing was trained";
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, MonitorsOnMesh,
                         ::testing::Values(Layout{.tp = 2, .sp = true}, Layout{.pp = 2, .chunks = 2}, Layout{.dp = 2, .zero1 = true},
                                           Layout{.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .tied = true}),
                         [](const auto& p) { return p.param.name(); });

// Rows of two sources, one of which has other tokens.
class TwoSources : public RandomRows {
 public:
  using RandomRows::RandomRows;
  void read(int64_t first, Batch& b) override {
    RandomRows::read(first, b);
    for (int64_t r = 0; r < b.rows; ++r)
      if (source_of(step, first + r) == 1) std::fill_n(b.targets.begin() + r * b.seq_len, b.seq_len, 5);
  }
  int32_t source_of(int64_t, int64_t row) const override { return row == 2 ? 1 : 0; }
};

TEST(Monitors, TellLossesBySourceAndPosition) {
  Config c = tiny_config();
  c.monitor.every = 1;
  c.optim.lr = 5e-3;
  c.data.sources = {{.name = "web", .path = "a"}, {.name = "code", .path = "b"}, {.name = "none", .path = "c"}};
  RealRun run(c);
  TwoSources rows(c);
  Monitors m;
  StepResult last;
  for (int64_t step = 1; step <= 8; ++step) {
    rows.step = step;
    last = run.step(step, rows);
    m = *last.monitors;
  }
  ASSERT_EQ(m.source_loss.size(), 2u);  // the third has no rows
  EXPECT_EQ(m.source_loss[0].first, "web");
  EXPECT_EQ(m.source_loss[1].first, "code");
  EXPECT_LT(m.source_loss[1].second, m.source_loss[0].second - 0.1);  // one target is learned
  EXPECT_NEAR((3 * m.source_loss[0].second + m.source_loss[1].second) / 4, last.loss, 1e-9 * last.loss);
  ASSERT_EQ(m.position_loss.size(), 16u);
  // Parts of 37 tokens are two or three long.
  double sum = 0;
  for (int64_t p = 0; p < 16; ++p)
    sum += m.position_loss[static_cast<size_t>(p)] * static_cast<double>((p * 37 + 52) / 16 - (p * 37 + 15) / 16);
  EXPECT_NEAR(sum / 37, last.loss, 1e-9 * last.loss);
}

// A query sees a little of the token after it.
class LeakingOps : public RefOps {
 public:
  using RefOps::RefOps;

 protected:
  void do_attention(Tensor out, Tensor lse, Tensor qkv, AttentionShape s, Tensor scratch) override {
    RefOps::do_attention(out, lse, qkv, s, scratch);
    for (int64_t n = 0; n + 1 < s.tokens(); ++n)
      if ((n + 1) % s.seq != 0) row(out, n)[0] += 1e-3 * row(qkv, n + 1)[s.qkv_width() - 1];
  }
};

template <class OpsOf>
class BackendOf final : public Backend {
 public:
  Device& device() override { return device_; }
  std::unique_ptr<Ops> make_ops(Region& temp) override { return std::make_unique<OpsOf>(temp); }
  std::string describe() const override { return "reference"; }

 private:
  CpuDevice device_;
};

template <class OpsOf>
double leak_of(int64_t layers) {
  Config c = with_one_rank(tiny_config());
  c.model.layers = layers;
  const Mesh mesh = one_rank(c);
  NullBackend null(nullptr);
  PlacedModel measured(c, f64_precision(), mesh, null, nullptr, ParamUse::training);
  TrainStep(measured.executor()).run(1, 0, nullptr);
  const MemoryPlan plan = measured.high_water();
  BackendOf<OpsOf> backend;
  PlacedModel model(c, f64_precision(), mesh, backend, &plan, ParamUse::training);
  model.executor().init_weights();
  TrainStep step(model.executor());
  RandomRows rows(c);
  step.run(1, 1e-3, &rows);
  Monitors m;
  const Batch batch = probe_batch(c);
  step.probe().run(&batch, m);
  return *m.leak;
}

TEST(Monitors, TheProbeSeesALeakOfOneToken) {
  EXPECT_EQ(leak_of<RefOps>(1), 0);
  EXPECT_GT(leak_of<LeakingOps>(1), 0);
  EXPECT_GT(leak_of<LeakingOps>(3), 0);
}

TEST(Monitors, RowsOfOneTokenHaveNoLaterOneThatCouldLeak) {
  Config c = Layout{}.config();
  c.train.seq_len = 1;
  const LayoutResult result = run_monitored(c);
  EXPECT_FALSE(result.steps.back().monitors->leak);
  EXPECT_TRUE(std::isfinite(*result.steps.back().monitors->probe_loss));
}

TEST(Monitors, TheProbeIsRare) {
  Config c = tiny_config();
  c.monitor.every = 10;
  c = with_one_rank(c);
  const Mesh mesh = one_rank(c);
  NullBackend null(nullptr);
  PlacedModel model(c, f64_precision(), mesh, null, nullptr, ParamUse::training);
  TrainStep step(model.executor());  // two micro-batches: a probe is a third of a step, 0.2 % of the time when it comes every 167
  EXPECT_EQ(step.probe().every(), 170);
  EXPECT_TRUE(step.probe().due(10));
  EXPECT_FALSE(step.probe().due(20));
  EXPECT_FALSE(step.probe().due(160));
  EXPECT_TRUE(step.probe().due(170));
  EXPECT_FALSE(step.probe().due(180));
}

TEST(Monitors, PartsOfTheModelFollowFromNames) {
  EXPECT_EQ(model_part("embedding", 12), 0);
  EXPECT_EQ(model_part("layers.0.norm1", 12), 1);
  EXPECT_EQ(model_part("layers.11.mlp.down", 12), 12);
  EXPECT_EQ(model_part("head.norm", 12), 13);
  EXPECT_EQ(model_part("head.output", 12), 13);
}

}  // namespace
}  // namespace hlat
