// What of a saved config an evaluation keeps: the model, and not how the run was spread.
#include "runtime/eval_model.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "config/print.h"
#include "support/scoring_model.h"

namespace hlat {
namespace {

CheckpointIndex saved_index() {
  Config c;
  c.train.seq_len = 512;
  c.train.global_batch = 8;
  c.train.micro_batch = 2;
  c.parallel.pp = 2;
  c.parallel.cuts = {3};
  c.parallel.dp = 4;
  CheckpointIndex index;
  index.config = json_text(to_json(c));
  return index;
}

TEST(EvaluationConfig, ItsMeshAndBatchAreItsOwn) {
  const CheckpointIndex index = saved_index();
  EXPECT_EQ(evaluation_config(index, {"parallel.dp=3"}, 0).parallel.dp, 3);
  EXPECT_EQ(evaluation_config(index, {}, 0).parallel, ParallelConfig{});
  EXPECT_EQ(evaluation_config(index, {"train.micro_batch=600"}, 0).train.micro_batch, 600);
  const Config shorter = evaluation_config(index, {"eval.cache_tokens=128"}, 64);
  EXPECT_EQ(shorter.train.seq_len, 64);
  EXPECT_EQ(shorter.eval.cache_tokens, 128);
}

// Weights alone have no products of FP8.
TEST(EvaluationConfig, RulesOfFp8DoNotBind) {
  Config c;
  c.model = {.preset = {}, .layers = 2, .hidden = 64, .heads = 4, .kv_heads = 2, .ffn = 96, .vocab = 101};
  c.train.seq_len = 72;
  c.train.global_batch = c.train.micro_batch = 8;
  c.train.precision = PrecisionKind::fp8;
  c.precision.fp8_grads = "e4m3";
  CheckpointIndex index;
  index.config = json_text(to_json(c));
  EXPECT_EQ(evaluation_config(index, {"train.micro_batch=1", "parallel.tp=4"}, 50).train.seq_len, 50);
  EXPECT_FALSE(precision_of(evaluation_config(index, {}, 0)).fp8);
  EXPECT_EQ(evaluation_config(index, {"train.precision=bf16"}, 0).train.precision, PrecisionKind::bf16);
}

TEST(EvaluationConfig, TheModelCannotBeChanged) {
  const CheckpointIndex index = saved_index();
  EXPECT_THROW(evaluation_config(index, {"model.rope_theta=500"}, 0), UsageError);
  EXPECT_THROW(evaluation_config(index, {"parallel.pp=9"}, 0), UsageError) << "more stages than layers";
}

// More sequences in a pass than attention splits the keys of.
TEST(EvaluationConfig, ManyShortTextsFitAPass) {
  Config config;
  config.model = {.preset = {}, .layers = 1, .hidden = 16, .heads = 2, .kv_heads = 1, .ffn = 16, .vocab = 32};
  config.train.seq_len = 3;
  config.train.micro_batch = config.train.global_batch = 600;
  config.parallel = {.dp = 1};
  with_scoring_model(config, [&](KvPasses& passes, Comm&) { EXPECT_EQ(passes.limits().segments, 600); });
}

}  // namespace
}  // namespace hlat
