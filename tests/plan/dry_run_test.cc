// Plans of the published models: an evaluation takes weights and nothing of a training step.
#include "plan/dry_run.h"

#include <gtest/gtest.h>

#include "config/load.h"
#include "support/paths.h"

namespace hlat {
namespace {

TEST(DryRun, AnEvaluationOfHlat7bTakesItsWeightsAlone) {
  const Config config = load_config(test::source_path("configs/hlat-7b.yaml"), {"parallel.tp=1", "parallel.dp=1"}).config;
  const RankPlan eval = dry_run(config, {.use = ParamUse::weights}), train = dry_run(config, {});
  // Two bytes a parameter, and the RoPE table in f32; a bucket may be padded.
  const auto rope = static_cast<size_t>(config.train.seq_len * config.model.head_dim()) * sizeof(float);
  const size_t least = 2 * static_cast<size_t>(eval.parameters) + rope;
  EXPECT_GE(eval.memory[Purpose::weight], least);
  EXPECT_LT(eval.memory[Purpose::weight], least + (size_t{1} << 20));
  EXPECT_EQ(eval.memory[Purpose::weight], train.memory[Purpose::weight]);
  EXPECT_EQ(eval.memory[Purpose::grad], 0u);
  EXPECT_EQ(eval.memory[Purpose::optimizer], 0u);
  // Nothing is kept for a backward: two block inputs in turn, and the last block's output.
  EXPECT_EQ(eval.memory[Purpose::saved], 3 * static_cast<size_t>(config.train.seq_len * config.model.hidden) * 2);
  EXPECT_EQ(eval.cost[OpKind::adamw].calls, 0);
  EXPECT_EQ(eval.tokens, config.train.seq_len);
  EXPECT_NEAR(eval.executed_flops(), eval.flops_per_token * static_cast<double>(eval.tokens), 0.01 * eval.executed_flops());
}

}  // namespace
}  // namespace hlat
