// hlat launch with loss.on_alarm = rollback and an alarm over several steps: the batches from its beginning to the step that found it are
// left out, on every layout and after another restart, and the run goes on.
#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/checkpoint_folder.h"
#include "dist/job.h"
#include "train/state_records.h"

namespace hlat::test {
namespace {

constexpr int64_t kAlarmRunSteps = 18, kAlarmRunRows = 8;

// Rows repeat from step 10 on, in seven steps of all attempts together. Three measurements in a row with such rows are an alarm: at step
// 12, since step 10. After a rollback they repeat in steps 10 to 13 again, so without the batch of step 10 alone the alarm comes back at
// step 13.
Job::Words alarm_words(const Job::Words& more) {
  Job::Words words{"launch",
                   "--config",
                   "tiny.yaml",
                   "run.dir=run",
                   "launch.backoff_s=1",
                   "train.steps=" + std::to_string(kAlarmRunSteps),
                   "checkpoint.every=8",
                   "checkpoint.at_end=true",
                   "monitor.every=1",
                   "loss.alarms=repetition",
                   "loss.on_alarm=rollback"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const char* const kRepeatedRows = "repeat step=10 steps=1 times=7";

std::vector<int64_t> skipped_steps(const Job& job) {
  return saved_loss(read_index(job.dir().path("run/checkpoints/step_" + std::to_string(kAlarmRunSteps)))).skipped;
}

// That metrics and the ledger tell what the checkpoint does.
void expect_told(const Job& job, const std::vector<int64_t>& skipped) {
  std::vector<int64_t> told;
  for (const nlohmann::json& line : job.metrics())
    if (line.contains("skipped")) told.push_back(line["step"]);
  EXPECT_EQ(told, skipped);
  EXPECT_EQ(job.metrics().size(), static_cast<size_t>(kAlarmRunSteps));
  std::ifstream in(job.dir().path("run/ledger.json"));
  EXPECT_EQ(nlohmann::json::parse(in)["skipped_rows"], kAlarmRunRows * static_cast<int64_t>(skipped.size()));
}

TEST(LaunchAlarm, AllBatchesOfItsRangeAreLeftOutOnEveryLayoutAndAfterAnotherRestart) {
  const std::vector<int64_t> range{10, 11, 12};
  for (const Job::Words& layout : {Job::Words{"launch.ranks=1"}, {"launch.ranks=2"}, {"launch.ranks=2", "parallel.tp=2"}}) {
    Job::Words more = layout;
    more.push_back(std::string("fault.inject=") + kRepeatedRows + "; kill rank=0 step=15");  // then from step 8 again
    Job job(0, alarm_words(more));
    const RunResult r = job.wait(180);
    ASSERT_EQ(r.exit_code, 0) << r.err;
    const auto faults = launch_events(job, "fault");
    ASSERT_EQ(faults.size(), 2u) << r.err;
    EXPECT_EQ(faults[0]["cause"], "alarm");
    EXPECT_EQ(faults[0]["step"], 10);
    EXPECT_EQ(faults[0]["until"], 12);
    EXPECT_EQ(faults[1]["cause"], "dead_rank");
    const auto skips = launch_events(job, "skip");
    ASSERT_EQ(skips.size(), 1u);
    EXPECT_EQ(skips[0]["step"], 10);
    EXPECT_EQ(skips[0]["until"], 12);
    EXPECT_NE(r.err.find("without the batches of steps 10 to 12"), std::string::npos) << r.err;
    EXPECT_EQ(skipped_steps(job), range) << r.err;
    expect_told(job, range);
  }
}

TEST(LaunchAlarm, TheFirstBatchesOfARangeBeyondTheBudgetAreLeftOut) {
  Job job(0, alarm_words({"launch.ranks=1", "loss.skips=2", std::string("fault.inject=") + kRepeatedRows}));
  const RunResult r = job.wait(120);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(skipped_steps(job), (std::vector<int64_t>{10, 11}));
  expect_told(job, {10, 11});
  EXPECT_NE(launch_events(job, "skip")[0]["reason"].get<std::string>().find(
                "the batches of steps 10 to 11 are skipped, the batch of step 12 is not, as loss.skips = 2 allows no more"),
            std::string::npos)
      << r.err;
}

// Its only checkpoint is of step 11, and the trouble began at 10.
TEST(LaunchAlarm, WithoutACheckpointBeforeItsBeginningItIsAStop) {
  Job job(0, alarm_words({"launch.ranks=1", "checkpoint.every=11", std::string("fault.inject=") + kRepeatedRows}));
  const RunResult r = job.wait(120);
  EXPECT_EQ(r.exit_code, 5) << r.err;
  EXPECT_NE(r.err.find("there is no checkpoint of a step before 10 to go back to"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("goes on from the newest, of step 11"), std::string::npos) << r.err;
  EXPECT_TRUE(launch_events(job, "skip").empty() && launch_events(job, "restart").empty()) << "nothing came of it";
  Job::Words words = alarm_words({"launch.ranks=1", "checkpoint.every=11", "loss.on_alarm=continue"});
  words[3] = "run.dir=" + job.dir().path("run");
  Job again(0, words);
  const RunResult rest = again.wait(120);
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_TRUE(skipped_steps(job).empty());
}

TEST(LaunchAlarm, WithoutALauncherTheFlagsThatGoBackAreTold) {
  Job::Words words = alarm_words({std::string("fault.inject=") + kRepeatedRows});
  words[0] = "train";
  Job job(0, words);
  const RunResult stopped = job.wait(60);
  EXPECT_EQ(stopped.exit_code, 5) << stopped.err;
  EXPECT_NE(stopped.err.find("--before 10 --unverified --skip 10,11,12 does"), std::string::npos) << stopped.err;
  words[3] = "run.dir=" + job.dir().path("run");
  words.insert(words.end(), {"--before", "10", "--unverified", "--skip", "10,11,12"});
  Job again(0, words);
  const RunResult r = again.wait(60);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  expect_told(job, {10, 11, 12});
}

}  // namespace
}  // namespace hlat::test
