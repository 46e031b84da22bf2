// Real runs of small models on the embedded corpus, of different shapes, seeds, precisions and schedules: none raises an alarm. And one
// that is not healthy does.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "backend/cpu/cpu_backend.h"
#include "comm/self_comm.h"
#include "fault/injector.h"
#include "runtime/assembly.h"
#include "support/temp_dir.h"
#include "train/trainer.h"

namespace hlat {
namespace {

struct HealthyRun {
  uint64_t seed = 1;
  PrecisionKind precision = PrecisionKind::fp32;
  int64_t layers = 2, hidden = 32, heads = 4, kv_heads = 2, seq_len = 32, global_batch = 4, warmup = 10, steps = 300;
  double lr = 5e-3;
  ScheduleKind schedule = ScheduleKind::cosine_clamped;
  bool tied = false;
  double clip = 1;
  const char* spikes = "";  // planted, each of them skipped by the loss policy
  std::vector<int64_t> skipped = {};

  Config config() const {
    Config c;
    c.model = {.preset = {}, .layers = layers, .hidden = hidden, .heads = heads, .kv_heads = kv_heads, .ffn = 2 * hidden, .vocab = 512};
    c.model.tied = tied;
    c.run.seed = c.data.seed = seed;
    c.train.steps = steps;
    c.train.seq_len = seq_len;
    c.train.global_batch = global_batch;
    c.train.micro_batch = 2;
    c.train.precision = precision;
    c.optim.lr = lr;
    c.optim.warmup = warmup;
    c.optim.schedule = schedule;
    c.optim.clip = clip;
    c.monitor.probe_every = 20;
    c.parallel.dp = 1;
    c.fault.inject = spikes;
    if (!skipped.empty()) c.loss.on_spike = c.loss.on_nonfinite = "skip";
    return c;
  }
};

// What a run told.
struct Told {
  std::vector<std::string> alarms;  // in words
  std::vector<int64_t> skipped;     // steps
  int64_t fp8_measured = 0;         // how often what FP8 could not hold was looked at
};

// After every step, for runs that are not healthy.
using AfterEach = std::function<void(PlacedModel& model, const StepMetrics& m)>;

// With the faults that the config plants. done: steps that an earlier process has taken.
Told told_in(Config config, const AfterEach& after = {}, int64_t done = 0) {
  const test::TempDir dir;
  config.run.dir = dir.path("run");
  CpuBackend backend({.threads = 1, .isa = "auto"});
  SelfComm world;
  Assembly assembly(config, backend, world, 1);
  PlacedModel& model = assembly.build();
  model.executor().init_weights();
  const Dataset data(config, 1);
  Told told;
  TrainSetup setup{.plan = assembly.plan(), .peak_flops = 1, .model = model, .data = &data};
  setup.tell_loss = [&](const LossEvent& event) {
    if (event.alarm) told.alarms.push_back(fmt::format("step {}: {}", event.step, event.verdict.words));
  };
  std::optional<fault::Injector> faults;
  if (fault::plants_faults(config.fault)) {
    faults.emplace(config, fault::InjectorSetup{.rank = 0, .ranks = 1});
    faults->place(model.mesh(), model.executor().params(), model.device(), config.train.steps);
    setup.faults = &*faults;
  }
  setup.goodput = [&](const StepMetrics& m) {
    told.fp8_measured += m.monitors && !m.monitors->fp8_saturated.empty();
    if (after) after(model, m);
    return 1.0;
  };
  TrainState state;
  state.step = done;
  int64_t step = 0;
  const TrainSummary summary = train(config, setup, state, step);
  EXPECT_EQ(static_cast<size_t>(state.alarms.times()), told.alarms.size());
  EXPECT_EQ(summary.alarms.empty(), told.alarms.empty());
  told.skipped = state.loss.skipped;
  return told;
}

std::vector<std::string> alarms_in(const Config& config, const AfterEach& after = {}) { return told_in(config, after).alarms; }

void expect_quiet(const std::vector<HealthyRun>& runs) {
  for (size_t i = 0; i < runs.size(); ++i) {
    const Told told = told_in(runs[i].config());
    for (const std::string& words : told.alarms) ADD_FAILURE() << "run " << i << ", " << words;
    EXPECT_EQ(told.skipped, runs[i].skipped) << "run " << i;
    const bool fp8 = runs[i].precision == PrecisionKind::fp8 || runs[i].precision == PrecisionKind::fp8_sr;
    EXPECT_EQ(told.fp8_measured, fp8 ? runs[i].steps / 10 : 0) << "run " << i;
  }
}

using enum PrecisionKind;

TEST(HealthyRuns, OfEveryPrecisionRaiseNoAlarm) {
  expect_quiet({{.seed = 1, .precision = fp32}, {.seed = 2, .precision = mixed}, {.seed = 3, .precision = bf16_sr}});
}

// The model has no layer that FP8 leaves out: every dimension is a multiple of 16.
TEST(HealthyRuns, OfFp8RaiseNoAlarm) {
  expect_quiet({{.seed = 24, .precision = fp8},
                {.seed = 25, .precision = fp8_sr},
                {.seed = 26, .precision = fp8, .layers = 3, .hidden = 64, .seq_len = 64, .lr = 2e-3, .tied = true},
                {.seed = 27, .precision = fp8_sr, .lr = 2e-3, .schedule = ScheduleKind::linear}});
}

// Steps that the loss policy leaves out are answered by that, also where several follow each other and where the numbers are not finite.
TEST(HealthyRuns, WithSkippedStepsRaiseNoAlarm) {
  expect_quiet({{.seed = 28, .spikes = "spike step=150; spike step=151; spike step=230", .skipped = {150, 151, 230}},
                {.seed = 29, .spikes = "nan rank=0 step=160; spike step=170", .skipped = {160, 170}},
                {.seed = 30, .precision = fp8, .spikes = "spike step=160; nan rank=0 step=200", .skipped = {160, 200}}});
}

// A quarter of the rows of a batch has 32 tokens: losses by position are noise for the most part.
TEST(HealthyRuns, OfFewTokensAStepRaiseNoAlarmInManySteps) {
  expect_quiet({{.seed = 49, .layers = 1, .hidden = 16, .heads = 2, .kv_heads = 2, .steps = 1500}});
}

TEST(HealthyRuns, HeavyOfManyShapesRaiseNoAlarm) {
  using enum ScheduleKind;
  expect_quiet({{.seed = 4, .precision = mixed_sr},
                {.seed = 5, .precision = bf16_sr, .lr = 2e-3},
                {.seed = 6, .layers = 1, .hidden = 16, .heads = 2, .lr = 1e-2},
                {.seed = 7, .layers = 6, .hidden = 48, .heads = 6, .lr = 3e-3},
                {.seed = 8, .precision = mixed, .layers = 4, .hidden = 64, .lr = 2e-3},
                {.seed = 9, .seq_len = 64, .global_batch = 8},
                {.seed = 10, .seq_len = 128, .global_batch = 2, .lr = 3e-3},
                {.seed = 11, .global_batch = 16},
                {.seed = 12, .warmup = 0, .lr = 2e-3},
                {.seed = 13, .warmup = 100},
                {.seed = 14, .steps = 600, .schedule = warmup_stable_decay},
                {.seed = 15, .steps = 600, .schedule = constant},
                {.seed = 16, .steps = 400, .lr = 1e-3, .schedule = linear},
                {.seed = 17, .tied = true},
                {.seed = 18, .precision = bf16_sr, .tied = true},
                {.seed = 19, .kv_heads = 1, .clip = 0},
                {.seed = 20, .precision = mixed, .layers = 3, .hidden = 32, .kv_heads = 4, .steps = 1000},
                {.seed = 21, .lr = 3e-4},
                {.seed = 22, .global_batch = 2, .steps = 1000},
                {.seed = 32, .steps = 3000},
                {.seed = 23, .precision = mixed, .lr = 1e-2, .schedule = cosine}});
}

// Bugs that a loss curve hides, and the alarm of a measured step that tells each before step 40.
TEST(UnhealthyRun, WithAPlantedBugRaisesItsAlarm) {
  struct Row {
    const char* fault;
    const char* told;
    PrecisionKind precision = fp32;
  };
  for (const Row& row :
       {Row{"leak", "step 10: alarm leak"}, Row{"bias_correction", "step 10: alarm wrong_update"},
        Row{"bias_correction", "step 10: alarm wrong_update", mixed},
        Row{"bias_correction step=15", "step 20: alarm wrong_update", mixed_sr}, Row{"repeat", "step 30: alarm repetition"}}) {
    Config config = HealthyRun{.precision = row.precision, .steps = 40}.config();
    config.fault.inject = row.fault;
    const std::vector<std::string> told = alarms_in(config);
    ASSERT_FALSE(told.empty()) << row.fault;
    EXPECT_EQ(told[0].find(row.told), 0u) << row.fault << ": " << told[0];
  }
}

// From step 200 on something makes all weights grow by 1 % in every step, as a fault of memory or of an update might.
TEST(UnhealthyRun, WithWeightsThatGrowRaisesAnAlarm) {
  const auto damage = [](PlacedModel& model, const StepMetrics& m) {
    if (m.step < 200) return;
    for (const Bucket& bucket : model.executor().params().buckets())
      for (int64_t i = 0; i < bucket.weight.shape.numel(); ++i) static_cast<float*>(bucket.weight.data)[i] *= 1.01F;
  };
  const std::vector<std::string> told = alarms_in(HealthyRun{.steps = 350}.config(), damage);
  EXPECT_TRUE(std::any_of(told.begin(), told.end(), [](const std::string& t) {
    return t.find("alarm loss_rise") != std::string::npos || t.find("alarm grad_growth") != std::string::npos;
  })) << (told.empty() ? "nothing was told" : told[0]);
}

// The verdict of rank 0 ends the run where the config says so.
TEST(UnhealthyRun, EndsWithTheAlarmWhereItIsAskedTo) {
  Config config = HealthyRun{.steps = 350}.config();
  config.loss.on_alarm = "stop";
  const auto shrink = [](PlacedModel& model, const StepMetrics& m) {
    if (m.step != 250) return;
    for (const Bucket& bucket : model.executor().params().buckets())
      for (int64_t i = 0; i < bucket.weight.shape.numel(); ++i) static_cast<float*>(bucket.weight.data)[i] *= 0.1F;
  };
  try {
    alarms_in(config, shrink);
    FAIL() << "the run went on";
  } catch (const FailedStep& e) {
    EXPECT_TRUE(e.kind == FailureKind::alarm) << e.what();
    EXPECT_NE(std::string(e.what()).find("loss.on_alarm = stop"), std::string::npos) << e.what();
  }
}

// The next regular probe would come in step 1000; by then a model that sees ahead is spoiled. Only what needs no history is told early.
TEST(HealthyRuns, ALeakThatEntersWithAResumeIsToldInTheFirstMeasuredStep) {
  HealthyRun run;
  run.steps = 60;
  run.spikes = "leak step=25";
  Config config = run.config();
  config.monitor.probe_every = 1000;
  std::vector<int64_t> leaks, whole;
  const Told told = told_in(
      config,
      [&](PlacedModel&, const StepMetrics& m) {
        if (m.monitors && m.monitors->leak) leaks.push_back(m.step);
        if (m.monitors && (m.monitors->probe_loss || !m.monitors->max_logit.empty())) whole.push_back(m.step);
      },
      24);
  EXPECT_EQ(leaks, std::vector<int64_t>{30});
  EXPECT_TRUE(whole.empty());
  ASSERT_EQ(told.alarms.size(), 1u);
  EXPECT_NE(told.alarms[0].find("step 30: "), std::string::npos) << told.alarms[0];
  EXPECT_NE(told.alarms[0].find("leak"), std::string::npos) << told.alarms[0];
}

// One probe where the first measured step of a process has one in any case.
TEST(HealthyRuns, ARegularProbeInTheFirstMeasuredStepIsWhole) {
  HealthyRun run;
  run.steps = 60;
  for (const int64_t done : {0, 12}) {  // probes in steps 10, 20, 40, 60
    std::vector<int64_t> leaks, whole;
    told_in(
        run.config(),
        [&](PlacedModel&, const StepMetrics& m) {
          if (m.monitors && m.monitors->leak) leaks.push_back(m.step);
          if (m.monitors && m.monitors->probe_loss && !m.monitors->max_logit.empty()) whole.push_back(m.step);
        },
        done);
    EXPECT_EQ(leaks, whole) << done;
    EXPECT_EQ(leaks, (done == 0 ? std::vector<int64_t>{10, 20, 40, 60} : std::vector<int64_t>{20, 40, 60}));
  }
}

}  // namespace
}  // namespace hlat
