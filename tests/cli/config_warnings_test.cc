// What a config may say but seldom means: each warning with the config that causes it, and none for the configs of this repository.
#include <gtest/gtest.h>

#include "cli/config_warnings.h"
#include "config/load.h"
#include "support/paths.h"

namespace hlat {
namespace {

Config two_sources() {
  Config c;
  c.train.steps = 500;
  c.data.tokenizer = "t.json";
  c.data.sources = {{.name = "web", .path = "w.txt"}, {.name = "books", .path = "b.txt"}};
  return c;
}

TEST(ConfigWarnings, AStageAfterTheLastStep) {
  Config c = two_sources();
  c.data.stages = {{.from_step = 500, .from_tokens = 0, .weights = {{"web", 1}}},
                   {.from_step = 501, .from_tokens = 0, .weights = {{"books", 1}}}};
  const std::vector<std::string> expected = {
      "data.stages[1] begins with step 501, after the last step of the run (500): its weights are never used"};
  EXPECT_EQ(config_warnings(c), expected);
  c.data.stages.pop_back();
  EXPECT_TRUE(config_warnings(c).empty());
  c.data.stages[0] = {.from_step = 0, .from_tokens = 500 * 8 * 128, .weights = {{"web", 1}}};
  EXPECT_EQ(config_warnings(c).size(), 1u) << "it would begin with step 501";
  c.train.steps = 0;  // train.epochs, not known yet
  c.train.epochs = 1;
  EXPECT_TRUE(config_warnings(c).empty());
}

TEST(ConfigWarnings, ASourceThatIsNeverRead) {
  Config c = two_sources();
  c.data.sources[1].weight = 0;
  EXPECT_EQ(config_warnings(c), std::vector<std::string>{"data.sources[1] (books) has weight 0 and is never read"});
  c.data.stages = {{.from_step = 9, .from_tokens = 0, .weights = {{"books", 1}}}};
  EXPECT_TRUE(config_warnings(c).empty());
}

TEST(ConfigWarnings, AScheduleThatEndsAfterTheRun) {
  Config c;
  c.optim.schedule = ScheduleKind::linear;
  c.optim.min_ratio = 0;
  c.optim.lr = 0.1;
  c.optim.schedule_steps = 200;
  const std::vector<std::string> expected = {
      "optim.schedule_steps (200) is after the last step of the run (100): the learning rate ends at 0.05, not at 0"};
  EXPECT_EQ(config_warnings(c), expected);
  c.optim.warmup = 150;
  ASSERT_EQ(config_warnings(c).size(), 1u);
  EXPECT_EQ(config_warnings(c)[0],
            "optim.warmup (150) is longer than the run (100 steps): the learning rate reaches 0.0667, not optim.lr (0.1)");
  c.optim = {.schedule = ScheduleKind::constant, .schedule_steps = 200};
  EXPECT_TRUE(config_warnings(c).empty()) << "the rate is the same at both ends";
}

TEST(ConfigWarnings, WhatElseIsSeldomMeant) {
  Config c;
  c.data.tokenizer = "t.json";
  ASSERT_EQ(config_warnings(c).size(), 1u);
  EXPECT_NE(config_warnings(c)[0].find("no data.sources"), std::string::npos);
  c = {};
  c.train.precision = PrecisionKind::bf16;
  ASSERT_EQ(config_warnings(c).size(), 1u);
  EXPECT_NE(config_warnings(c)[0].find("known to diverge"), std::string::npos);
  c = {};
  c.data.validation = 0.1;
  c.data.validate_every = 101;
  ASSERT_EQ(config_warnings(c).size(), 1u);
  EXPECT_NE(config_warnings(c)[0].find("validated at the end only"), std::string::npos);
}

TEST(ConfigWarnings, PrecisionsThatAreKnownToGoWrong) {
  const auto only = [](const Config& c, const char* words) {
    const std::vector<std::string> found = config_warnings(c);
    ASSERT_EQ(found.size(), 1u) << words;
    EXPECT_NE(found[0].find(words), std::string::npos) << found[0];
  };
  Config c;
  c.train.precision = PrecisionKind::mixed;
  c.precision.masters = "none";
  only(c, "mixed with masters=none rounds every update to the nearest bf16 and is known to diverge; bf16_sr and mixed do not");
  c.train.precision = PrecisionKind::fp8;
  only(c, "fp8 with masters=none rounds every update to the nearest bf16 and is known to diverge; fp8_sr and fp8 do not");
  c = {};
  c.train.precision = PrecisionKind::mixed;
  c.parallel.dp = 2;
  EXPECT_TRUE(config_warnings(c).empty());
  c.parallel.zero1 = false;
  only(c, "every replica holds 12 more bytes per parameter; parallel.zero1=true");
  c.precision.moments = "bf16";
  c.optim.beta2 = 0.95;
  only(c, "every replica holds 8 more bytes per parameter; parallel.zero1=true");
  c = {};
  c.train.precision = PrecisionKind::bf16_sr;
  c.optim.beta2 = 0.99;
  only(c, "optim.beta2 = 0.99");
  c.optim.beta2 = 0.95;
  c.precision.keyed_noise = false;
  only(c, "drift apart");
  c = {};
  c.model.scaled_init = false;
  EXPECT_TRUE(config_warnings(c).empty()) << "four layers do not need it";
  c.model.layers = 12;
  only(c, "scaled_init = false");
}

TEST(ConfigWarnings, NoneForTheConfigsOfTheRepository) {
  for (const char* name : {"nano", "llama-134m", "llama-1b", "hlat-7b", "hlat-70b"}) {
    const std::vector<std::string> found = config_warnings(load_config(test::source_path("configs/") + name + ".yaml").config);
    EXPECT_TRUE(found.empty()) << name << ": " << found[0];
  }
}

}  // namespace
}  // namespace hlat
