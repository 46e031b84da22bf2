// The loss of held-out rows: that of a training step on the same rows, bit by bit, in every layout; weights and memory stay.
#include <gtest/gtest.h>

#include <mutex>

#include "eval/validation.h"
#include "support/layout_run.h"
#include "support/real_run.h"

namespace hlat {
namespace {

class EvaluateLayouts : public testing::TestWithParam<Layout> {};

// run_layout itself holds every rank's memory against its plan.
TEST_P(EvaluateLayouts, LossIsThatOfTheStep) {
  const Config config = GetParam().config();
  constexpr int64_t kSteps = 2;
  std::mutex mutex;
  std::vector<double> ahead;  // of each rank, before the last step
  const LayoutResult plain = run_layout(config, kSteps);
  const LayoutResult looked = run_layout(config, kSteps, [&](TrainStep& train, int64_t step) {
    Executor& executor = train.executor();
    LayoutRows next(config, executor.mesh());
    next.step = step + 1;
    const double loss = mean_loss(executor, config.train.global_batch, executor.reads_batches() ? &next : nullptr);
    const std::lock_guard lock(mutex);
    if (step + 1 == kSteps) ahead.push_back(loss);
  });
  ASSERT_EQ(static_cast<int64_t>(ahead.size()), config.parallel.ranks());
  for (const double loss : ahead) EXPECT_EQ(loss, looked.steps.back().loss);
  EXPECT_EQ(looked.steps.back().loss, plain.steps.back().loss) << "looking changes nothing";
  EXPECT_EQ(looked.weights, plain.weights);
}

INSTANTIATE_TEST_SUITE_P(Layouts, EvaluateLayouts,
                         testing::Values(Layout{}, Layout{.dp = 2}, Layout{.tp = 2, .sp = true}, Layout{.pp = 2},
                                         Layout{.pp = 2, .chunks = 2}, Layout{.tp = 2, .pp = 2, .dp = 2, .zero1 = true},
                                         Layout{.pp = 4, .recompute = "full", .tied = true},
                                         Layout{.dp = 2, .precision = PrecisionKind::bf16_sr}),
                         [](const auto& i) { return i.param.name(); });

// Hands everything on, until its group is said to have given up, as NCCL's does: operations then return with any values.
class AbortedComm final : public Comm {
 public:
  AbortedComm(std::unique_ptr<Comm> inner, const bool& aborted)
      : Comm(inner->rank(), inner->size(), inner->name()), inner_(std::move(inner)), aborted_(aborted) {}
  std::unique_ptr<Comm> split(int color, int key, std::string name) override { return inner_->split(color, key, std::move(name)); }
  void check() override {
    if (aborted_) fail<FaultError>("the group gave up");
  }

 protected:
  uint64_t start_send(const void*, size_t, int, int) override { return 1; }
  uint64_t start_recv(void*, size_t, int, int) override { return 1; }
  void finish(uint64_t) override {}

 private:
  std::unique_ptr<Comm> inner_;
  const bool& aborted_;
};

TEST(Evaluate, ALossAfterAnAbortIsAnErrorAndNotANumber) {
  const Config config = with_one_rank(tiny_config());
  SelfComm world;
  const auto backend = cpu_device().make();
  Assembly assembly(config, *backend, world, 1);
  bool aborted = false;
  PlacedModel& model =
      assembly.build([&](std::unique_ptr<Comm> inner) { return std::make_unique<AbortedComm>(std::move(inner), aborted); });
  model.executor().init_weights();
  RandomRows rows(config);
  EXPECT_NO_THROW(mean_loss(model.executor(), 2, &rows));
  aborted = true;
  EXPECT_THROW(mean_loss(model.executor(), 2, &rows), FaultError);
}

TEST(Evaluate, TakesAnyWholeNumberOfMicroBatches) {
  const Config config = tiny_config();
  RealRun run(config);
  run.step(1);
  class Shifted : public BatchSource {
   public:
    Shifted(const Config& config, int64_t by) : rows_(config), by_(by) { rows_.step = 9; }
    void read(int64_t first, Batch& b) override { rows_.read(first + by_, b); }

   private:
    RandomRows rows_;
    int64_t by_;
  };
  Shifted rows(config, 0), later(config, 2);
  const double two = mean_loss(run.executor(), 2, &rows), six = mean_loss(run.executor(), 6, &rows);
  EXPECT_NEAR(six, (two + 2 * mean_loss(run.executor(), 4, &later)) / 3, 1e-6);
  EXPECT_NO_THROW(run.check_used());
  EXPECT_THROW(mean_loss(run.executor(), 3, &rows), CheckFailed) << "micro-batches of two";
}

// Without gradients, optimizer state and kept activations the loss has the same bits, and its own plan is exact too.
TEST(Evaluate, WeightsAloneGiveTheLossInLessMemory) {
  for (const PrecisionKind precision : {PrecisionKind::fp32, PrecisionKind::mixed, PrecisionKind::bf16_sr}) {
    Config config = with_one_rank(tiny_config());
    config.train.precision = precision;
    RealRun trains(config);
    RandomRows rows(config);
    const auto backend = cpu_device().make();
    SelfComm world;
    Assembly assembly(config, *backend, world, 1, ParamUse::weights);
    PlacedModel& model = assembly.build();
    model.executor().init_weights();
    EXPECT_EQ(mean_loss(model.executor(), 4, &rows), mean_loss(trains.executor(), 4, &rows)) << name_of(precision);
    EXPECT_NO_THROW(assembly.plan().check_used(model.high_water(), model.mesh()));
    for (const Purpose p : {Purpose::grad, Purpose::optimizer}) EXPECT_EQ(model.high_water()[p], 0u) << name_of(p);
    EXPECT_LT(model.high_water()[Purpose::saved], trains.plan().memory[Purpose::saved]);
    EXPECT_THROW(model.executor().backward({}, {}), CheckFailed);
  }
}

// The logits of a few rows, of every rank: shorter sequences than a step's, and lengths inside them.
std::vector<std::vector<float>> logits_of(const Config& config) {
  std::mutex mutex;
  std::vector<std::vector<float>> all;
  run_layout(config, 1, [&](TrainStep& train, int64_t) {
    Batch batch(config.train.micro_batch, 7);
    RandomRows(config).read(0, batch);
    std::vector<float> mine;
    for (const int64_t length : {1, 4, 7}) {
      const std::vector<float> next = train.executor().next_logits(batch.inputs, batch.seq_len, length);
      mine.insert(mine.end(), next.begin(), next.end());
    }
    const std::lock_guard lock(mutex);
    all.push_back(mine);
  });
  return all;
}

// One step of training before it has moved weights apart by rounding: 1e-4 of logits of size one is ample, and finds a wrong token or part.
TEST(Evaluate, LogitsAreThoseOfOneRankOnAnyMesh) {
  const std::vector<float> one = logits_of(Layout{}.config()).front();
  for (const Layout& layout : {Layout{.tp = 2}, Layout{.tp = 3, .sp = true}, Layout{.pp = 2}, Layout{.pp = 2, .chunks = 2},
                               Layout{.tp = 2, .pp = 2, .sp = true}, Layout{.tp = 8, .sp = true}})
    for (const std::vector<float>& rank : logits_of(layout.config())) {
      ASSERT_EQ(rank.size(), one.size()) << layout.name();
      for (size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(rank[i], one[i], 1e-4) << layout.name() << ", logit " << i;
    }
}

}  // namespace
}  // namespace hlat
