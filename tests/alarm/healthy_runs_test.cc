// Real runs of small models on the embedded corpus, of different shapes, seeds, precisions and schedules: none raises an alarm. And one
// that is not healthy does.
#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "comm/self_comm.h"
#include "runtime/assembly.h"
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
    return c;
  }
};

// The events of its loss policy that are alarms, in words.
std::vector<std::string> alarms_in(const Config& config) {
  CpuBackend backend({.threads = 1, .isa = "auto"});
  SelfComm world;
  Assembly assembly(config, backend, world, 1);
  PlacedModel& model = assembly.build();
  model.executor().init_weights();
  const Dataset data(config, 1);
  std::vector<std::string> told;
  TrainSetup setup{.plan = assembly.plan(), .peak_flops = 1, .model = model, .data = &data};
  setup.tell_loss = [&](const LossEvent& event) {
    if (event.alarm) told.push_back(fmt::format("step {}: {}", event.step, event.verdict.words));
  };
  TrainState state;
  int64_t step = 0;
  const TrainSummary summary = train(config, setup, state, step);
  EXPECT_EQ(static_cast<size_t>(state.alarms.times()), told.size());
  EXPECT_EQ(summary.alarms.empty(), told.empty());
  return told;
}

void expect_quiet(const std::vector<HealthyRun>& runs) {
  for (size_t i = 0; i < runs.size(); ++i)
    for (const std::string& words : alarms_in(runs[i].config())) ADD_FAILURE() << "run " << i << ", " << words;
}

using enum PrecisionKind;

TEST(HealthyRuns, OfEveryPrecisionRaiseNoAlarm) {
  expect_quiet({{.seed = 1, .precision = fp32}, {.seed = 2, .precision = mixed}, {.seed = 3, .precision = bf16_sr}});
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
                {.seed = 23, .precision = mixed, .lr = 1e-2, .schedule = cosine}});
}

// Five hundred times the learning rate of the others, in the middle of a run: its loss leaves the trend, and does not come back.
TEST(UnhealthyRun, WithARateFarTooLargeRaisesAnAlarm) {
  HealthyRun run{.seed = 1, .warmup = 0, .steps = 400, .lr = 0.5, .clip = 0};
  EXPECT_FALSE(alarms_in(run.config()).empty());
}

}  // namespace
}  // namespace hlat
