// What of a model is FP8, in the plan's words and bytes.
#include "plan/fp8_plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/report.h"
#include "plan/save_plan.h"

namespace hlat {
namespace {

Config fp8_config(int64_t ffn, PrecisionKind precision = PrecisionKind::fp8) {
  Config c;
  c.model = {.preset = {}, .layers = 2, .hidden = 64, .heads = 4, .kv_heads = 2, .ffn = ffn, .vocab = 101};
  c.train.seq_len = 32;
  c.train.global_batch = 12;
  c.train.precision = precision;
  c.parallel.dp = 1;
  return c;
}

constexpr int64_t kAttention = 2 * (128 * 64 + 64 * 64);

TEST(Fp8Plan, SaysWhatStaysInBf16) {
  EXPECT_EQ(fp8_plan(fp8_config(96)).parameters, kAttention + 2 * 3 * 64 * 96);
  EXPECT_EQ(fp8_text(fp8_config(96)), "FP8: products with 61.4k parameters\n");
  EXPECT_EQ(fp8_text(fp8_config(90)),
            "FP8: products with 24.6k parameters; in bf16, as no multiples of 16: mlp.gate_up (180 x 64), mlp.down (64 x 90)\n");
  EXPECT_EQ(fp8_text(fp8_config(88)), "FP8: products with 47.1k parameters; in bf16, as no multiples of 16: mlp.down (64 x 88)\n");
  EXPECT_EQ(fp8_text(fp8_config(96, PrecisionKind::mixed)), "");
  const Config c = fp8_config(90);
  const nlohmann::ordered_json j = plan_json(c, {dry_run(c, {})}, {}, {});
  EXPECT_EQ(j["fp8"]["parameters"], kAttention);
  EXPECT_EQ(j["fp8"]["wide"].size(), 2u);
}

// Of a weight in FP8 a checkpoint has its master alone: in the plan as by what the ranks save.
TEST(Fp8Plan, CheckpointsHaveNoCopyBesideTheMaster) {
  for (const PrecisionKind precision : {PrecisionKind::fp8, PrecisionKind::fp8_sr, PrecisionKind::mixed}) {
    Config c = fp8_config(96, precision);
    c.checkpoint.every = 10;
    const RankPlan plan = dry_run(c, {});
    EXPECT_EQ(save_plan(c, plan, {}).bytes, plan.saved_bytes) << name_of(precision);
  }
}

// Buckets are whole pieces of memory for any number of shards.
TEST(Fp8Plan, AnyNumberOfShards) {
  for (const int64_t dp : {1, 2, 3, 4, 6, 12}) {
    Config c = fp8_config(96);
    c.parallel.dp = dp;
    EXPECT_NO_THROW(dry_run(c, {})) << dp;
  }
}

}  // namespace
}  // namespace hlat
