// Healthy runs on several ranks, as a user starts them: every rule of the alarms looks at what the ranks measure together, and none is
// raised.
#include <gtest/gtest.h>

#include <algorithm>

#include "dist/job.h"

namespace hlat::test {
namespace {

void expect_no_alarm(Job::Words words) {
  for (const char* word : {"train.steps=240", "train.micro_batch=2", "optim.warmup=10", "monitor.every=10", "parallel.health_every=50",
                           "checkpoint.every=0", "checkpoint.at_end=false"})
    words.emplace_back(word);
  Job job(2, tiny_run(words), {"--bind-to", "none"});
  const RunResult r = job.wait(240);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto lines = job.metrics();
  ASSERT_EQ(lines.size(), 240u);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const nlohmann::json& line) { return line.contains("monitors"); }), 24);
  EXPECT_LT(lines.back()["loss"], 0.8 * lines.front()["loss"].get<double>()) << "it has learned something";
  for (const nlohmann::json& event : job.events()) EXPECT_NE(event["kind"], "alarm") << event;
}

TEST(HealthyDist, TensorParallelRanksRaiseNoAlarm) { expect_no_alarm({"parallel.tp=2", "train.precision=bf16_sr", "run.seed=41"}); }

TEST(HealthyDist, PipelineStagesRaiseNoAlarm) { expect_no_alarm({"parallel.pp=2", "train.precision=mixed", "run.seed=42"}); }

TEST(HealthyDist, ReplicasThatShareOptimizerStatesRaiseNoAlarm) {
  expect_no_alarm({"parallel.dp=2", "parallel.zero1=true", "train.precision=mixed_sr", "run.seed=43"});
}

}  // namespace
}  // namespace hlat::test
