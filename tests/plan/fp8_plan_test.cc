// What of a model is FP8, in the plan's words and bytes.
#include "plan/fp8_plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/format.h"
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
  const auto text = [](int64_t ffn) {
    const std::string s = fp8_text(fp8_config(ffn), RankPlan{});
    return s.empty() ? s : s.substr(0, s.size() - 1);
  };
  EXPECT_EQ(text(96), "FP8: products with 61.4k parameters");
  EXPECT_EQ(text(90), "FP8: products with 24.6k parameters; in bf16, as no multiples of 16: mlp.gate_up (180 x 64), mlp.down (64 x 90)");
  EXPECT_EQ(text(88), "FP8: products with 47.1k parameters; in bf16, as no multiples of 16: mlp.down (64 x 88)");
  EXPECT_EQ(fp8_text(fp8_config(96, PrecisionKind::mixed), RankPlan{}), "");
  const Config c = fp8_config(90);
  const nlohmann::ordered_json j = plan_json(c, {dry_run(c, {})}, {}, {});
  EXPECT_EQ(j["fp8"]["parameters"], kAttention);
  EXPECT_EQ(j["fp8"]["wide"].size(), 2u);
}

// What the backward needs is kept in the same outputs as bf16 would have, so the plan knows the other's memory to the byte.
TEST(Fp8Plan, SaysWhatIsKeptInBf16) {
  struct Row {
    int64_t ffn = 96;
    int tp = 1, pp = 1, micro = 1;
    bool sequence = false;
    RecomputeKind recompute = RecomputeKind::none;
    const char* weight_grads = "";
  };
  for (const Row& r :
       {Row{}, Row{.ffn = 90}, Row{.ffn = 88, .micro = 3}, Row{.tp = 3, .sequence = true}, Row{.tp = 2}, Row{.pp = 2, .micro = 2},
        Row{.recompute = RecomputeKind::selective}, Row{.recompute = RecomputeKind::full}, Row{.weight_grads = "bf16"}}) {
    Config c = fp8_config(r.ffn);
    c.model.heads = 4, c.model.kv_heads = 1;
    c.parallel.tp = r.tp, c.parallel.pp = r.pp, c.parallel.sequence = r.sequence;
    c.train.micro_batch = r.micro;
    c.train.recompute.kind = r.recompute;
    c.precision.weight_grads = r.weight_grads;
    Config bf16 = c;
    bf16.train.precision = PrecisionKind::mixed;
    bf16.precision = {};
    const RankPlan plan = dry_run(c, {});
    const size_t saved = plan.memory[Purpose::saved], wide = dry_run(bf16, {}).memory[Purpose::saved];
    EXPECT_EQ(saved + plan.fp8_saves, wide) << r.ffn << " tp " << r.tp << " pp " << r.pp;
    const bool less = r.recompute == RecomputeKind::none && *r.weight_grads == 0;
    EXPECT_EQ(saved < wide, less);
    const std::string words = fmt::format("; saved {}, {} in bf16\n", format_bytes(saved), format_bytes(wide));
    EXPECT_EQ(fp8_text(c, plan).ends_with(words), less) << fp8_text(c, plan);
  }
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
