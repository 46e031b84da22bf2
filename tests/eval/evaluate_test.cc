// The loss of held-out rows: that of a training step on the same rows, bit by bit, in every layout; weights and memory stay.
#include <gtest/gtest.h>

#include <mutex>

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
  const LayoutResult looked = run_layout(config, kSteps, [&](StepRunner& runner, int64_t step) {
    const auto next = [&](int64_t first, int32_t* in, int32_t* out) { lane_batch(config, step + 1, first, in, out); };
    const double loss = runner.evaluate(config.train.global_batch, next);
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

TEST(Evaluate, TakesAnyWholeNumberOfMicroBatches) {
  const Config config = tiny_config();
  RealRun run(config);
  run.step(1);
  const auto rows = [&](int64_t first, int32_t* in, int32_t* out) { random_batch(config, 9, first, in, out); };
  const double two = run.runner().evaluate(2, rows), six = run.runner().evaluate(6, rows);
  const auto later = [&](int64_t first, int32_t* in, int32_t* out) { random_batch(config, 9, first + 2, in, out); };
  EXPECT_NEAR(six, (two + 2 * run.runner().evaluate(4, later)) / 3, 1e-6);
  EXPECT_EQ(run.used().total(), run.plan().memory.total());
  EXPECT_THROW(run.runner().evaluate(3, rows), CheckFailed) << "micro-batches of two";
}

}  // namespace
}  // namespace hlat
