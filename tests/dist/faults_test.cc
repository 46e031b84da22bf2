// Planted faults in real runs of several ranks, without a launcher that starts them again: the run ends as it should with such a fault,
// and started again with the same words it does not meet the fault once more and ends with the bits of a run without faults.
#include <gtest/gtest.h>

#include "checkpoint/checkpoint_folder.h"
#include "dist/saving_run.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLastStep = 8;

SavingRun::Words with_fault(const std::string& inject, const SavingRun::Words& more = {}) {
  SavingRun::Words words = {"train.steps=8", "checkpoint.every=2", "parallel.timeout_s=3"};
  if (!inject.empty()) words.push_back("fault.inject=" + inject);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The weights and the optimizer's state at the end of a run of two ranks without faults.
const std::string& sound_end() {
  static const std::string content = [] {
    const SavingRun run(2, with_fault(""));
    if (const RunResult r = run.run(); r.exit_code != 0) throw std::runtime_error(r.err);
    return run.content(kLastStep);
  }();
  return content;
}

void expect_recovers(const SavingRun& run) {
  const RunResult again = run.run();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.err.find("hlat: fault.inject"), std::string::npos) << "it came again: " << again.err;
  EXPECT_EQ(run.latest(), kLastStep);
  EXPECT_TRUE(run.content(kLastStep) == sound_end());
}

struct FaultCase {
  std::string inject;
  int exit_code;
  std::string words;  // of stderr
};

void expect_ends(const SavingRun& run, const FaultCase& fault, const std::string& told) {
  const RunResult r = run.run();
  EXPECT_EQ(r.exit_code, fault.exit_code) << fault.inject << ": " << r.err;
  EXPECT_NE(r.err.find("hlat: fault.inject: " + told), std::string::npos) << r.err;
  EXPECT_NE(r.err.find(fault.words), std::string::npos) << r.err;
  EXPECT_NE(run.log().find("fault.inject: " + told), std::string::npos) << run.log();
}

TEST(Faults, ARankThatEndsEndsTheRunOnce) {
  for (const FaultCase& fault :
       std::vector<FaultCase>{{"kill", 128 + 9, "signal 9"}, {"crash", 128 + 11, "signal 11"}, {"error", 1, "that nothing handles"}}) {
    const SavingRun run(2, with_fault(fault.inject + " rank=1 step=6"));
    expect_ends(run, fault, fault.inject + " of rank 1 at step 6");
    EXPECT_LT(run.latest(), kLastStep);
    expect_recovers(run);
  }
}

TEST(Faults, ARankThatDoesNotArriveIsWaitedForNoLongerThanTheLimit) {
  for (const FaultCase& fault : std::vector<FaultCase>{
           {"stop", 4, "waited 3 s for rank 1"}, {"hang", 4, "waited 3 s for rank 1"}, {"lost", 4, "waited 3 s for rank"}}) {
    const SavingRun run(2, with_fault(fault.inject + " rank=1 step=6"));
    expect_ends(run, fault, fault.inject + " of rank 1 at step 6" + (fault.inject == "lost" ? ", along dp" : ""));
    expect_recovers(run);
  }
}

TEST(Faults, LostMessagesOfOtherAxes) {
  for (const std::string axis : {"tp", "pp"}) {
    const SavingRun run(2, with_fault("lost rank=0 step=3 axis=" + axis, {"parallel." + axis + "=2"}));
    expect_ends(run, {"lost", 4, "waited 3 s for rank"}, "lost of rank 0 at step 3, along " + axis);
  }
}

TEST(Faults, NumbersThatAreOffAreFound) {
  for (const FaultCase& fault : std::vector<FaultCase>{{"nan rank=1 step=6", 5, "at step 6 a gradient is not finite"},
                                                       {"bitflip_weight rank=1 step=6", 5, "step 6"},
                                                       {"bitflip_grad rank=0 step=6", 5, "step 6"}}) {
    const SavingRun run(2, with_fault(fault.inject, {"parallel.health_every=1", "loss.on_nonfinite=stop"}));
    const RunResult r = run.run();
    EXPECT_EQ(r.exit_code, fault.exit_code) << fault.inject << ": " << r.err;
    EXPECT_NE(r.err.find(fault.words), std::string::npos) << r.err;
    // The tensor that was struck is the one that the check names.
    const size_t told = r.err.find(" at step 6, in ");
    ASSERT_NE(told, std::string::npos) << r.err;
    const std::string line = r.err.substr(told, r.err.find('\n', told) - told);
    const std::string name = line.substr(line.rfind(' ') + 1);
    ASSERT_FALSE(name.empty()) << line;
    EXPECT_NE(r.err.find(name, told + line.size()), std::string::npos) << name << " is not named: " << r.err;
    expect_recovers(run);
  }
}

TEST(Faults, AFullDiskHoldsUpNothing) {
  const SavingRun run(2, with_fault("disk_full rank=1 step=2 times=2"));
  const RunResult r = run.run();
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_NE(r.err.find("fault.inject: disk_full of rank 1 at step "), std::string::npos) << r.err;
  EXPECT_GE(run.events("save_failed").size(), 1u);
  EXPECT_NE(run.events("save_failed")[0]["reason"].get<std::string>().find("No space left on device"), std::string::npos);
  EXPECT_EQ(run.latest(), kLastStep);
  EXPECT_TRUE(run.content(kLastStep) == sound_end());
}

TEST(Faults, ACorruptCheckpointIsPassedOver) {
  const SavingRun run(2, with_fault("corrupt rank=1; slow rank=0 step=1 steps=7 seconds=0.3"));
  expect_ends(run, {"corrupt", 128 + 9, "signal 9"}, "corrupt of rank 1 at step ");
  ASSERT_GE(run.saved().size(), 2u) << "an older one is there";
  const std::string newest = "step_" + std::to_string(run.latest());
  expect_recovers(run);
  EXPECT_NE(run.log().find(newest), std::string::npos) << run.log();
}

TEST(Faults, ASlowRankIsSlowForItsSteps) {
  const SavingRun run(2, with_fault("slow rank=1 step=3 steps=2 seconds=0.5"));
  const RunResult r = run.run();
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const auto metrics = run.metrics();
  ASSERT_EQ(metrics.size(), static_cast<size_t>(kLastStep));
  for (const size_t step : {3, 4}) EXPECT_GE(metrics[step - 1]["step_s"].get<double>(), 0.45) << metrics[step - 1];
  EXPECT_TRUE(run.content(kLastStep) == sound_end());
}

TEST(Faults, ASpikeIsOneOfTheRecordedLoss) {
  const SavingRun run(0, with_fault("spike step=3"));
  const RunResult r = run.run();
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const auto losses = run.losses();
  ASSERT_EQ(losses.size(), static_cast<size_t>(kLastStep));
  EXPECT_GT(losses[2], 50 * losses[1]);
  EXPECT_LT(losses[3], 2 * losses[1]);
}

TEST(Faults, AHostThatIsGoneTakesAllItsRanks) {
  const SavingRun run(2, with_fault("host rank=1 step=4"));
  expect_ends(run, {"host", 128 + 9, "signal 9"}, "host of rank 1 at step 4");
  expect_recovers(run);
}

TEST(Faults, AStartUpThatHangsIsNamed) {
  for (const auto& [phase, words] : std::vector<std::pair<std::string, std::string>>{
           {"mpi", "start-up: joining the other ranks (MPI_Init) has not ended within 2 s"}, {"data", "start-up: opening the data"}}) {
    const SavingRun run(2, with_fault("hang_start rank=1 phase=" + phase, {"parallel.start_timeout_s=2"}));
    const RunResult r = run.run();
    EXPECT_EQ(r.exit_code, 4) << r.err;
    EXPECT_NE(r.err.find("hlat: fault.inject: hang_start of rank 1 in phase " + phase), std::string::npos) << r.err;
    EXPECT_NE(r.err.find(words), std::string::npos) << r.err;
  }
}

TEST(Faults, ANewRunMeetsThemAgain) {
  const SavingRun run(0, with_fault("error step=3"));
  EXPECT_EQ(run.run().exit_code, 1);
  EXPECT_EQ(run.run().exit_code, 0);
  const SavingRun::Words words = {
      "train", "--config", "tiny.yaml", "run.dir=" + run.folder(), "--fresh", "train.steps=8", "fault.inject=error step=3"};
  Job fresh(0, words);
  EXPECT_EQ(fresh.wait().exit_code, 1);
  EXPECT_TRUE(fs::exists(run.folder() + "/previous_1/faults.jsonl"));
}

TEST(Faults, RanksThatAreNotThereAreToldOnce) {
  const SavingRun run(2, with_fault("kill rank=2 step=1; stop rank=7 step=1"));
  const RunResult r = run.run();
  EXPECT_EQ(r.exit_code, 2) << r.err;
  EXPECT_NE(r.err.find("fault.inject: kill rank=2 step=1: there is no such rank; there are ranks 0 to 1"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("stop rank=7"), std::string::npos) << r.err;
  EXPECT_FALSE(fs::exists(run.folder()));
}

}  // namespace
}  // namespace hlat::test
