// hlat check --model with threads as ranks: healthy models of many shapes and policies pass every check, and each planted bug is found by
// the check that is for it, which names where it is.
#include "selfcheck/self_check.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>
#include <mutex>

#include "backend/cpu/cpu_backend.h"
#include "fault/damage.h"
#include "support/layout_run.h"
#include "support/message_of.h"
#include "support/precision_rows.h"
#include "support/temp_dir.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

SelfCheckReport check_model_of(Config config, const std::set<std::string>& only = {},
                               const std::function<void(CheckModel&)>& after_load = {}) {
  const test::TempDir dir;
  config.run.dir = dir.path("run");
  SelfCheckReport report;
  std::mutex mutex;
  run_thread_ranks(mesh_shape(config.parallel).ranks(), [&](Comm& world) {
    CpuBackend backend({.threads = 1, .isa = "auto"});
    std::vector<int> all(static_cast<size_t>(world.size()));
    for (size_t r = 0; r < all.size(); ++r) all[r] = static_cast<int>(r);
    const SelfCheckReport own = run_self_checks(
        config, {.backend = backend, .world = world, .local_ranks = world.size(), .on_host = all, .after_load = after_load}, only);
    const std::lock_guard lock(mutex);
    if (world.rank() == 0) report = own;
  });
  EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << "nothing is left behind";
  return report;
}

// All but the data, whose tokens need a larger vocabulary.
const std::set<std::string> kWithoutData = {"init",    "loss",     "rope",   "leak",   "gradients",
                                            "updates", "replicas", "shared", "resume", "recompute"};

std::vector<std::string> failed_in(const SelfCheckReport& report) {
  std::vector<std::string> names;
  for (const ModelCheck& c : report.checks)
    if (c.verdict.state == CheckState::failed) names.push_back(c.name);
  return names;
}

class HealthyModel : public ::testing::TestWithParam<Layout> {};

TEST_P(HealthyModel, PassesEveryCheck) {
  Config c = GetParam().config();
  c.model.init_std = 0.02;
  const SelfCheckReport report = check_model_of(c, kWithoutData);
  EXPECT_TRUE(report.well()) << report.text();
  EXPECT_EQ(report.checks.size(), kWithoutData.size());
}

// NOLINTBEGIN(bugprone-*)
std::vector<Layout> healthy() {
  using enum PrecisionKind;
  return {
      {},
      {.tied = true},
      {.kv = 1, .precision = mixed},
      {.recompute = "selective", .precision = bf16_sr},
      {.tp = 2, .dp = 2, .zero1 = true},
      {.tp = 2, .dp = 2, .sp = true, .precision = mixed},
      {.pp = 2, .tied = true, .precision = mixed_sr},
      {.tp = 3, .sp = true, .recompute = "every:2", .tied = true},
      {.tp = 4, .kv = 1, .vocab = 97, .precision = bf16},
      {.dp = 4, .zero1 = true, .precision = bf16_sr},
      {.dp = 2, .micro = 2, .precision = bf16},
      {.pp = 2, .dp = 2, .zero1 = true, .chunks = 2, .recompute = "full", .tied = true},
      {.pp = 3, .layers = 7},
      {.tp = 2, .pp = 2, .dp = 2, .sp = true, .zero1 = true, .kv = 8, .precision = mixed_sr},
      {.precision = fp8},
      {.tied = true, .precision = fp8_sr},
      {.tp = 2, .dp = 2, .zero1 = true, .precision = fp8},
      {.tp = 2, .dp = 2, .sp = true, .precision = fp8_sr},
      {.tp = 2, .dp = 4, .zero1 = true, .precision = fp8_sr},
      {.tp = 4, .pp = 2, .recompute = "full", .kv = 1, .precision = fp8},
      {.pp = 2, .dp = 2, .zero1 = true, .chunks = 2, .recompute = "every:2", .tied = true, .precision = fp8},
  };
}
// NOLINTEND(bugprone-*)

INSTANTIATE_TEST_SUITE_P(Table, HealthyModel, ::testing::ValuesIn(healthy()),
                         [](const ::testing::TestParamInfo<Layout>& row) { return row.param.name(); });

// A shrunk copy of a large model, with the embedded data of the run.
Config large_model() {
  Config c;
  c.model = {.preset = {}, .layers = 6, .hidden = 1024, .heads = 16, .kv_heads = 4, .ffn = 2816, .vocab = 32000};
  c.train.seq_len = 1024;
  c.train.global_batch = 32;
  c.train.micro_batch = 2;
  c.train.precision = PrecisionKind::mixed;
  c.parallel.dp = 1;
  return c;
}

// Rows of precision outside the presets, on ranks that add up and share.
TEST(SelfCheck, EveryPrecisionRowIsWell) {
  std::vector<PrecisionChoice> rows = plain_rows();
  for (const PrecisionChoice& row : fp8_rows()) rows.push_back(row);
  for (const PrecisionChoice& row : rows) {
    Config c = Layout{.tp = 2, .dp = 2}.config();
    c.model.init_std = 0.02;
    row.apply(c);
    fit_fp8(c);
    const SelfCheckReport report = check_model_of(c, kWithoutData);
    EXPECT_TRUE(report.well()) << row.words() << "\n" << report.text();
    EXPECT_NE(report.model.find(row.words()), std::string::npos) << report.model;
  }
}

// Weights that come apart are what was asked for.
TEST(SelfCheck, RanksThatDrawNoiseOfTheirOwnAreWell) {
  for (const bool zero1 : {false, true}) {
    Config c = Layout{.tp = 2, .dp = 2, .zero1 = zero1}.config();
    c.model.init_std = 0.02;
    hlat_7b_row().apply(c);
    c.precision.keyed_noise = false;
    const SelfCheckReport report = check_model_of(c, kWithoutData);
    EXPECT_TRUE(report.well()) << report.text();
    EXPECT_NE(report.text().find("keyed_noise = false"), std::string::npos) << report.text();
  }
}

TEST(SelfCheck, AShrunkCopyOfALargeModelIsWell) {
  for (const auto& [tp, pp, dp] : {std::array{1, 1, 1}, {2, 1, 2}, {1, 2, 1}}) {
    Config c = large_model();
    c.parallel.tp = tp, c.parallel.pp = pp, c.parallel.dp = dp;
    const SelfCheckReport report = check_model_of(c);
    EXPECT_TRUE(report.well()) << report.text();
    EXPECT_EQ(report.checks.size(), kModelChecks.size());
    EXPECT_EQ(report.model.find("a shrunk copy"), 0u) << report.model;
    EXPECT_EQ(report.json()["checks"].size(), kModelChecks.size());
  }
}

// A loss in bf16 often has the same value with another token.
TEST(SelfCheck, ALossOfFewValuesIsNoLostToken) {
  for (const double init_std : {0.002, 0.02})
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Config c = Layout{.layers = 1, .precision = PrecisionKind::bf16_sr}.config();
      c.precision.loss = "bf16";
      c.model.init_std = init_std;
      c.run.seed = seed;
      const SelfCheckReport report = check_model_of(c, {"leak"});
      EXPECT_TRUE(report.well()) << "init_std " << init_std << ", seed " << seed << "\n" << report.text();
    }
}

// Updates near what the types of weights resolve, and below it.
TEST(SelfCheck, UpdatesWithinRoundingAreWell) {
  using enum PrecisionKind;
  for (const PrecisionKind precision : {fp32, mixed, mixed_sr, bf16_sr, bf16})
    for (const double clip : {0.0, 0.01, 1e-4})
      for (const double init_std : {0.002, 0.3}) {
        Config c = Layout{.tp = 2, .dp = 2, .zero1 = clip != 0, .tied = clip == 0.01, .precision = precision}.config();
        c.model.init_std = init_std;
        c.optim.eps = 1e-5;
        c.optim.clip = clip;
        const SelfCheckReport report = check_model_of(c, {"updates", "replicas", "shared"});
        EXPECT_TRUE(report.well()) << "init_std " << init_std << ", clip " << clip << "\n" << report.text();
      }
}

struct PlantedBug {
  const char* fault;
  Layout layout;
  std::vector<std::string> checks;  // that fail, all of them
  std::vector<std::string> words;   // of the first of them
};

class PlantedModelBug : public ::testing::TestWithParam<PlantedBug> {};

TEST_P(PlantedModelBug, IsFoundAndNamed) {
  Config c = GetParam().layout.config();
  c.model.init_std = 0.02;
  c.fault.inject = GetParam().fault;
  const SelfCheckReport report = check_model_of(c, kWithoutData);
  EXPECT_EQ(failed_in(report), GetParam().checks) << report.text();
  const ModelCheck* found = report.find(GetParam().checks.front());
  ASSERT_NE(found, nullptr);
  for (const std::string& words : GetParam().words) EXPECT_NE(found->verdict.words.find(words), std::string::npos) << found->verdict.words;
  EXPECT_NE(report.text().find("FAILED"), std::string::npos);
  EXPECT_EQ(report.json()["well"], false);
}

// NOLINTBEGIN(bugprone-*)
std::vector<PlantedBug> bugs() {
  using enum PrecisionKind;
  return {
      {"leak", {}, {"leak", "gradients"}, {"changes by", "tokens after them"}},
      {"leak", {.tp = 2, .dp = 2, .zero1 = true, .precision = mixed}, {"leak", "gradients"}, {"tokens after them"}},
      {"drop_share rank=1", {.dp = 2}, {"gradients"}, {"the share of rank 1 (tp 0, pp 0, dp 1) counts", "0.00 times"}},
      {"drop_share rank=2 tensor=layers.1.mlp.down",
       {.dp = 4, .zero1 = true, .precision = mixed},
       {"gradients"},
       {"in the sum over dp the share of rank 2 (tp 0, pp 0, dp 2) counts"}},
      {"scale_grad rank=1 tensor=layers.0.mlp.down",
       {.tp = 2},
       {"gradients"},
       {"layers.0.mlp.down", "rank 1 (tp 1, pp 0, dp 0) is 2.00 times"}},
      {"scale_grad rank=2 tensor=layers.2.attention.qkv factor=1.5",
       {.tp = 2, .dp = 2, .zero1 = true, .precision = mixed},
       {"gradients"},
       {"layers.2.attention.qkv", "the share of rank 2 (tp 0, pp 0, dp 1) counts 1."}},
      {"rope rank=1", {.pp = 2}, {"rope", "gradients"}, {"pipeline stage 1 (ranks 1)"}},
      {"rope rank=0", {.tp = 2, .pp = 2, .precision = mixed}, {"rope"}, {"pipeline stage 0 (ranks 0, 1)"}},
      {"logits", {}, {"loss", "gradients"}, {"log V is 4.6151 (V 101)", "with these initial weights"}},
      {"logits", {.tp = 2, .dp = 2, .sp = true, .zero1 = true, .precision = mixed}, {"loss", "gradients"}, {"log V is 4.6151"}},
      {"logits factor=16", {.pp = 2, .tied = true, .precision = bf16_sr}, {"loss", "gradients"}, {"log V is 4.6151"}},
      {"recompute", {}, {"recompute"}, {"train.recompute none and full: the gradient of embedding, the gradient of layers.0."}},
      {"recompute",
       {.tp = 2, .dp = 2, .zero1 = true, .precision = mixed},
       {"recompute"},
       {"train.recompute none and full: the gradient of embedding"}},
      {"recompute", {.pp = 2, .recompute = "every:2", .precision = bf16_sr}, {"gradients", "recompute"}, {"layers.0."}},
      {"recompute", {.recompute = "selective"}, {"gradients", "recompute"}, {"layers.0.norm"}},
      {"bias_correction", {}, {"updates"}, {"0.447 times"}},
      {"bias_correction", {.dp = 2, .zero1 = true, .precision = bf16_sr}, {"updates"}, {"times what AdamW with bias correction makes"}},
      {"leak", {.precision = fp8}, {"leak", "gradients"}, {"changes by", "tokens after them"}},
      {"leak", {.tp = 2, .dp = 2, .zero1 = true, .precision = fp8_sr}, {"leak", "gradients"}, {"tokens after them"}},
      {"drop_share rank=1", {.dp = 2, .precision = fp8}, {"gradients"}, {"the share of rank 1 (tp 0, pp 0, dp 1) counts", "0.00 times"}},
      {"drop_share rank=3 tensor=layers.2.mlp.down",
       {.tp = 2, .dp = 2, .zero1 = true, .precision = fp8_sr},
       {"gradients"},
       {"the share of rank 3 (tp 1, pp 0, dp 1) counts"}},
      {"drop_share rank=5 tensor=layers.1.mlp.gate_up",
       {.tp = 2, .dp = 8, .zero1 = true, .precision = fp8},
       {"gradients"},
       {"the share of rank 5 (tp 1, pp 0, dp 2) counts"}},
      {"scale_grad rank=1 tensor=layers.3.mlp.down factor=1.15",
       {.pp = 2, .precision = fp8},
       {"gradients"},
       {"1 tensors differ from one rank's, layers.3.mlp.down on rank 1 (tp 0, pp 1, dp 0) by 0.15 (limit 0.08)"}},
      {"scale_grad rank=1 tensor=layers.0.mlp.down",
       {.tp = 2, .precision = fp8},
       {"gradients"},
       {"layers.0.mlp.down", "the gradient of rank 1 (tp 1, pp 0, dp 0) is"}},
      {"scale_grad rank=0 tensor=layers.1.attention.output factor=1.5",
       {.tp = 2, .sp = true, .precision = fp8_sr},
       {"gradients"},
       {"layers.1.attention.output", "rank 0 (tp 0, pp 0, dp 0) is 1."}},
      {"scale_grad rank=2 tensor=layers.2.attention.qkv factor=1.5",
       {.tp = 2, .dp = 2, .zero1 = true, .precision = fp8},
       {"gradients"},
       {"layers.2.attention.qkv", "the share of rank 2 (tp 0, pp 0, dp 1) counts 1."}},
      {"scale_grad rank=3 tensor=layers.3.mlp.down factor=1.5",
       {.tp = 2, .dp = 2, .precision = fp8_sr},
       {"gradients"},
       {"layers.3.mlp.down", "the share of rank 3 (tp 1, pp 0, dp 1) counts 1."}},
      {"scale_grad rank=1 tensor=layers.0.attention.qkv",
       {.tp = 2, .dp = 2, .sp = true, .precision = fp8},
       {"gradients"},
       {"layers.0.attention.qkv", "the share of rank 1 (tp 1, pp 0, dp 0) counts"}},
      {"scale_grad rank=6 tensor=layers.1.mlp.gate_up factor=1.5",
       {.tp = 2, .dp = 8, .precision = fp8_sr},
       {"gradients"},
       {"layers.1.mlp.gate_up", "the share of rank 6 (tp 0, pp 0, dp 3) counts 1."}},
      {"recompute", {.precision = fp8_sr}, {"recompute"}, {"train.recompute none and full: the gradient of embedding"}},
      {"recompute", {.tp = 2, .dp = 2, .zero1 = true, .precision = fp8}, {"recompute"}, {"none and full: the gradient of embedding"}},
  };
}
// NOLINTEND(bugprone-*)

INSTANTIATE_TEST_SUITE_P(Table, PlantedModelBug, ::testing::ValuesIn(bugs()), [](const auto& row) {
  std::string name = std::string(row.param.fault).substr(0, std::string(row.param.fault).find(' ')) + "_" + row.param.layout.name();
  return name;
});

// One moment of one rank, lost or with one bit off between a save and a load.
TEST(SelfCheck, AMomentThatALoadDoesNotBringBackFailsResumeAlone) {
  for (const bool lost : {true, false}) {
    const auto spoil = [lost](CheckModel& model) {
      if (model.mesh().coord().dp != 1) return;
      const AdamwTensors& unit = model.params().units().back().tensors;
      const Tensor moment = (lost ? unit.m : unit.v).viewed({unit.m.numel()});
      if (lost)
        fault::multiply(model.device(), moment, 0);
      else
        fault::flip_bit(model.device(), moment, 3);
    };
    Config c = Layout{.dp = 2}.config();
    c.model.init_std = 0.02;
    const SelfCheckReport report = check_model_of(c, kWithoutData, spoil);
    EXPECT_EQ(failed_in(report), std::vector<std::string>{"resume"}) << report.text();
    EXPECT_NE(report.text().find("step 4 after a load differs on rank 1 (tp 0, pp 0, dp 1): the "), std::string::npos) << report.text();
    EXPECT_NE(report.text().find(lost ? "the first moment of" : "the second moment of"), std::string::npos) << report.text();
  }
}

TEST(SelfCheck, ARepeatedSourceIsFound) {
  for (const int64_t dp : {1, 2}) {
    Config c = large_model();
    c.parallel.dp = dp;
    c.fault.inject = "repeat";
    const SelfCheckReport report = check_model_of(c, {"data"});
    EXPECT_EQ(failed_in(report), std::vector<std::string>{"data"}) << report.text();
    EXPECT_NE(report.text().find("rows were there before: row 1 of step 1 is row 0 of step 1"), std::string::npos) << report.text();
  }
}

TEST(SelfCheck, AFaultOfALaterStepOrOfAnotherKindDoesNotComeAbout) {
  Config c = Layout{.dp = 2}.config();
  c.fault.inject = "leak step=50; kill rank=0 step=1; nan rank=1 step=1";
  EXPECT_TRUE(check_model_of(c, {"leak", "gradients"}).well());
}

TEST(SelfCheck, NumbersThatAreNotFiniteFailTheChecksThatMeetThem) {
  Config c = Layout{.dp = 2}.config();
  c.model.init_std = 1e30;
  const SelfCheckReport report = check_model_of(c, {"loss", "updates", "replicas"});
  EXPECT_EQ(failed_in(report), (std::vector<std::string>{"loss", "updates", "replicas"})) << report.text();
  EXPECT_NE(report.text().find("at step 1 a gradient is not finite"), std::string::npos) << report.text();
}

TEST(SelfCheck, WhatCannotBeIsBadInput) {
  Config c = layout_config();
  c.fault.inject = "drop_share rank=0";
  EXPECT_THROW(check_model_of(c, {"leak"}), UsageError);
  EXPECT_NE(message_of([] { parse_model_checks("leak,lek"); }).find("'lek' is no check of the model"), std::string::npos);
  EXPECT_THROW(parse_model_checks(""), UsageError);
}

}  // namespace
}  // namespace hlat
