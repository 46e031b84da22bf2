// The loss policy of the real program: what is skipped, told, remembered and refused, and which checkpoint a run goes back to.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/health_record.h"
#include "support/checkpoint_content.h"
#include "support/tiny_runs.h"
#include "train/state_records.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

class LossPolicyRun : public TinyRuns {
 protected:
  LossPolicyRun() : TinyRuns(12, 2, 100) {}

  // Steps that metrics.jsonl calls skipped.
  std::vector<int64_t> skipped(const std::string& run) const {
    std::vector<int64_t> steps;
    for (const json& line : metrics(run))
      if (line.contains("skipped")) steps.push_back(line["step"]);
    return steps;
  }
  std::vector<json> losses(const std::string& run) const {
    std::vector<json> values;
    for (const json& line : metrics(run)) values.push_back(line["loss"]);
    return values;
  }
};

TEST_F(LossPolicyRun, AskedStepsArePassedOverAndRemembered) {
  ASSERT_EQ(train("plain").exit_code, 0);
  const RunResult once = train("once", {"--skip", "1,5,7"});
  ASSERT_EQ(once.exit_code, 0) << once.err;
  EXPECT_EQ(skipped("once"), (std::vector<int64_t>{1, 5, 7}));
  EXPECT_TRUE(losses("once")[4].is_null());
  EXPECT_NE(losses("once")[1], losses("plain")[1]) << "the weights of step 1 are the initial ones";
  EXPECT_NE(checkpoint_content(step("once", 12)), checkpoint_content(step("plain", 12)));
  EXPECT_NE(once.out.find("skipped      3 steps"), std::string::npos) << once.out;
  ASSERT_EQ(events("once", "skip").size(), 3u);
  const json event = events("once", "skip")[1];
  EXPECT_EQ(event["step"], 5);
  EXPECT_EQ(event["cause"], "asked");
  EXPECT_EQ(event["rows"], 4);
  EXPECT_EQ(event["documents"].size(), event["document_count"].get<size_t>());
  EXPECT_GE(event["documents"].size(), 4u);
  // In two parts, the flag given to the first alone; data and records are those of one part.
  ASSERT_EQ(train("parts", {"--skip", "1,5,7", "train.steps=5"}).exit_code, 0);
  EXPECT_EQ(saved_loss(read_index(step("parts", 5))).to_skip, (std::vector<int64_t>{7}));
  ASSERT_EQ(train("parts").exit_code, 0);
  EXPECT_EQ(losses("parts"), losses("once"));
  EXPECT_EQ(checkpoint_content(step("parts", 12)), checkpoint_content(step("once", 12)));
  EXPECT_EQ(saved_loss(read_index(step("parts", 12))), saved_loss(read_index(step("once", 12))));
  EXPECT_EQ(saved_position(read_index(step("parts", 12))), saved_position(read_index(step("plain", 12))));
  EXPECT_EQ(train("once", {"--skip", "0"}).exit_code, 2);
  EXPECT_EQ(train("once", {"--skip", "x"}).exit_code, 2);
}

// The rule of HLAT with hardly any rise: every gradient norm above the mean of the last 20 is a spike.
TEST_F(LossPolicyRun, SpikesAreSkippedAndARunInPartsDecidesAlike) {
  const Words words = {"train.steps=40",      "optim.schedule_steps=40", "loss.rule=hlat",
                       "loss.norm_rise=1e-6", "loss.on_spike=skip",      "loss.skips=1000"};
  ASSERT_EQ(train("whole", words).exit_code, 0);
  const std::vector<int64_t> steps = skipped("whole");
  ASSERT_GE(steps.size(), 2u);
  EXPECT_GT(steps.front(), 20) << "there is no mean before";
  EXPECT_EQ(events("whole", "skip").size(), steps.size());
  EXPECT_EQ(events("whole", "skip")[0]["cause"], "spike");
  EXPECT_TRUE(losses("whole")[static_cast<size_t>(steps[0] - 1)].is_number()) << "it was computed";
  // A part ends right after a skipped step, which then stands in the middle of the statistics.
  const std::string cut = std::to_string(steps[0]);
  for (const std::string& end : {std::string("10"), cut, std::string("40")}) {
    Words part = words;
    part[0] = "train.steps=" + end;
    const RunResult result = train("parts", part);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(skipped("parts"), steps);
  EXPECT_EQ(losses("parts"), losses("whole"));
  EXPECT_EQ(checkpoint_content(step("parts", 40)), checkpoint_content(step("whole", 40)));
  EXPECT_EQ(saved_loss(read_index(step("parts", 40))), saved_loss(read_index(step("whole", 40))));
}

TEST_F(LossPolicyRun, SpikesEndTheRunOrAreTold) {
  const Words words = {"train.steps=40", "loss.rule=hlat", "loss.norm_rise=1e-6", "checkpoint.at_end=false", "checkpoint.every=0"};
  const auto with = [&](const std::string& more) {
    Words all = words;
    all.push_back(more);
    return all;
  };
  const RunResult told = train("told", with("loss.on_spike=continue"));
  ASSERT_EQ(told.exit_code, 0) << told.err;
  ASSERT_FALSE(events("told", "spike").empty());
  EXPECT_TRUE(skipped("told").empty());
  const int64_t first = events("told", "spike")[0]["step"];
  const RunResult ended = train("ended", with("loss.on_spike=stop"));
  EXPECT_EQ(ended.exit_code, 5) << ended.err;
  EXPECT_NE(ended.err.find("at step " + std::to_string(first)), std::string::npos) << ended.err;
  ASSERT_EQ(events("ended", "spike").size(), 1u);
  EXPECT_EQ(events("ended", "spike")[0]["action"], "stop");
  EXPECT_EQ(events("ended", "end")[0]["exit_code"], 5);
}

TEST_F(LossPolicyRun, WhatIsNotFiniteIsSkippedUpToALimit) {
  const Words absurd = {"optim.lr=100", "optim.clip=0", "optim.warmup=0"};  // a few updates make all later gradients NaN
  const RunResult stopped = train("stopped", absurd);
  EXPECT_EQ(stopped.exit_code, 5) << stopped.err;
  ASSERT_EQ(events("stopped", "non_finite").size(), 1u);
  EXPECT_GE(events("stopped", "non_finite")[0]["documents"].size(), 4u);
  Words skips = absurd;
  skips.insert(skips.end(), {"loss.on_nonfinite=skip", "loss.skips=3"});
  const RunResult many = train("many", skips);
  EXPECT_EQ(many.exit_code, 5) << many.err;
  EXPECT_NE(many.err.find("loss.skips = 3 allows no more"), std::string::npos) << many.err;
  EXPECT_EQ(skipped("many").size(), 3u);
  EXPECT_TRUE(metrics("many").back()["grad_norm"].is_null());
}

TEST_F(LossPolicyRun, GoesBackToACheckpointThatWasFoundRight) {
  for (const char* end : {"4", "8", "12"}) ASSERT_EQ(train("run", {"train.steps=" + std::string(end)}).exit_code, 0);
  EXPECT_EQ(health_of(read_index(step("run", 8))), (HealthRecord{.checked = 8, .passed = 0})) << "one rank, finite numbers";
  const RunResult list = run_binary({"ckpt", "ls", dir_.path("run"), "--json"});
  EXPECT_EQ(json::parse(list.out)["folders"][0]["checkpoints"][1]["health"]["verified"], true) << list.out;
  const std::string before = checkpoint_content(step("run", 12));
  const RunResult back = train("run", {"--before", "8"});
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_NE(back.err.find("the run goes back to step 4"), std::string::npos) << back.err;
  EXPECT_TRUE(fs::exists(dir_.path("run/checkpoints/previous_1/step_8")));
  EXPECT_EQ(checkpoint_content(step("run", 12)), before) << "the same run again";
  const RunResult none = train("run", {"--before", "3"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("step 4 (verified)"), std::string::npos) << none.err;
  const RunResult anew = train("anew", {"--before", "3"});
  EXPECT_EQ(anew.exit_code, 0);
  EXPECT_NE(anew.err.find("starts from its beginning"), std::string::npos) << anew.err;
}

}  // namespace
}  // namespace hlat::test
