// hlat launch with real ranks and planted faults: each is named rightly, the run goes on by itself and ends with the bits of a run that
// nothing happened to, and nothing is left behind.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "checkpoint/checkpoint_folder.h"
#include "dist/job.h"
#include "supervise/host_processes.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLaunchSteps = 8;

Job::Words launch_words(int ranks, const std::string& inject, const Job::Words& more = {}) {
  Job::Words words{"launch",
                   "--config",
                   "tiny.yaml",
                   "run.dir=run",
                   "launch.ranks=" + std::to_string(ranks),
                   "train.steps=" + std::to_string(kLaunchSteps),
                   "checkpoint.every=2",
                   "launch.hang_s=6",
                   "launch.backoff_s=1"};
  if (!inject.empty()) words.push_back("fault.inject=" + inject);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void expect_nothing_left(const Job& job) {
  const std::string prefix = run_prefix(fs::path(job.dir().path("run")));
  EXPECT_TRUE(within(10, [&] { return processes_of(prefix).empty(); }));
  for (const auto& entry : fs::directory_iterator("/dev/shm")) EXPECT_FALSE(entry.path().string().starts_with(prefix)) << entry.path();
  EXPECT_FALSE(fs::exists(job.dir().path("run/run.lock")));
}

constexpr int kAnyRank = -2;  // a gradient is summed before it is looked at

struct Planted {
  int ranks;
  const char* inject;
  const char* cause;  // of the event
  int rank;
  const char* words;  // of the reason
  Job::Words more = {};
};

class LaunchFaults : public testing::TestWithParam<Planted> {};

TEST_P(LaunchFaults, AreNamedAndSurvived) {
  const Planted& p = GetParam();
  Job struck(0, launch_words(p.ranks, p.inject, p.more)), calm(0, launch_words(p.ranks, "", p.more));
  const RunResult r = struck.wait(180), c = calm.wait(180);
  ASSERT_EQ(c.exit_code, 0) << c.err;
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto faults = launch_events(struck, "fault");
  ASSERT_EQ(faults.size(), 1u) << r.err;
  EXPECT_EQ(faults[0]["cause"], p.cause) << r.err;
  if (p.rank != kAnyRank) {
    EXPECT_EQ(faults[0]["rank"], p.rank) << r.err;
  }
  EXPECT_NE(faults[0]["reason"].get<std::string>().find(p.words), std::string::npos) << faults[0];
  EXPECT_EQ(launch_events(calm, "fault").size(), 0u);
  EXPECT_EQ(launch_events(struck, "restart").size(), 1u);
  EXPECT_EQ(launch_events(struck, "finished").size(), 1u);
  const auto metrics = struck.metrics(), expected = calm.metrics();
  ASSERT_EQ(metrics.size(), static_cast<size_t>(kLaunchSteps));
  for (size_t i = 0; i < metrics.size(); ++i) EXPECT_EQ(metrics[i]["loss"], expected[i]["loss"]) << i;
  EXPECT_EQ(metrics.back()["param_norm"], expected.back()["param_norm"]);
  EXPECT_TRUE(fs::exists(struck.dir().path("run/launch/fault_1.txt")));
  expect_nothing_left(struck);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, LaunchFaults,
    testing::Values(Planted{1, "kill rank=0 step=5", "dead_rank", 0, "killed"}, Planted{2, "kill rank=1 step=5", "dead_rank", 1, "killed"},
                    Planted{4, "stop rank=2 step=5", "hang", 2, "stopped", {"parallel.tp=2"}},
                    Planted{4, "hang rank=1 step=5", "hang", 1, "no progress", {"parallel.pp=2"}},
                    Planted{2, "error rank=0 step=5", "error", 0, "nothing handles"},
                    Planted{2, "nan rank=1 step=5", "non_finite", kAnyRank, "not finite"},
                    Planted{2, "hang_start rank=1 phase=data", "start_hang", 1, "data", {"launch.start_hang_s=15"}},
                    Planted{2, "slow rank=0 step=1 steps=20 seconds=0.2; corrupt rank=0 step=3", "dead_rank", 0, "killed"}));

TEST(Launch, BadInputIsNotStartedAgain) {
  Job job(0, launch_words(2, "", {"data.embedded=false"}));
  const RunResult r = job.wait(60);
  EXPECT_EQ(r.exit_code, 2) << r.err;
  Job rank(0, launch_words(2, "kill rank=7 step=3"));
  const RunResult refused = rank.wait(60);
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_EQ(launch_events(rank, "restart").size(), 0u);
}

TEST(Launch, TheSameFailureAtOneStepStopsIt) {
  Job job(0, launch_words(2, "error rank=1 step=5 times=9", {"launch.same_failure=2"}));
  const RunResult r = job.wait(120);
  EXPECT_EQ(r.exit_code, 1) << r.err;
  EXPECT_EQ(launch_events(job, "restart").size(), 1u) << r.err;
  EXPECT_EQ(launch_events(job, "stop").size(), 1u);
  expect_nothing_left(job);
}

TEST(Launch, ASignalSavesAndEndsAndTheSameCommandGoesOn) {
  Job job(0, launch_words(2, "", {"train.steps=100000", "optim.schedule_steps=100000"}));
  job.await_step(3);
  job.terminate();
  const RunResult r = job.wait(60);
  EXPECT_EQ(r.exit_code, 6) << r.err;
  expect_nothing_left(job);
  const int64_t last = job.metrics().back()["step"];
  EXPECT_TRUE(fs::exists(checkpoint_path(job.dir().path("run/checkpoints"), last))) << last;
}

// The launcher is killed: its agent asks the ranks to save and end. Another one refuses while the first lives, and goes on after it.
TEST(Launch, AKilledLauncherLeavesNothingAndIsTakenOver) {
  const Job::Words words = launch_words(2, "", {"train.steps=40", "optim.schedule_steps=40"});
  Job job(0, words);
  job.await_step(2);
  const std::string run = "run.dir=" + job.dir().path("run");
  Job::Words again = words;
  again[3] = run;
  Job second(0, again);
  const RunResult refused = second.wait(60);
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  kill(job.pid(), SIGKILL);
  job.wait(10);
  Job third(0, again);
  const RunResult r = third.wait(120);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const auto metrics = job.metrics();
  ASSERT_EQ(metrics.size(), 40u);
  for (size_t i = 0; i < metrics.size(); ++i) EXPECT_EQ(metrics[i]["step"], i + 1);
  expect_nothing_left(job);
}

// A host that never answers holds up the start, but not those that do: their agents wait without anything to tell.
TEST(Launch, AHostThatDoesNotAnswerIsDoneWithout) {
  Job job(0, launch_words(0, "", {"launch.hosts=localhost:2,nowhere:2", "launch.remote=sh -c 'exec sleep 1000'", "launch.patience_s=1"}));
  const RunResult r = job.wait(150);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_NE(r.err.find("host nowhere: it does not answer"), std::string::npos) << r.err;
  const auto attempts = launch_events(job, "attempt");
  ASSERT_EQ(attempts.size(), 1u) << r.err;
  EXPECT_EQ(attempts[0]["hosts"], nlohmann::json::array({"localhost"}));
  expect_nothing_left(job);
}

// Signals that come while ranks start, or before: nothing is lost, and a job script has the run queued again.
TEST(Launch, ASignalDuringTheStartEndsItAsSaved) {
  Job job(0, launch_words(2, "hang_start rank=1 phase=data", {"launch.start_hang_s=100"}));
  EXPECT_TRUE(within(60, [&] { return launch_events(job, "attempt").size() == 1 && job.ranks().size() == 2; }));
  job.terminate();
  const RunResult r = job.wait(90);
  EXPECT_EQ(r.exit_code, 6) << r.err;
  ASSERT_EQ(launch_events(job, "stop").size(), 1u) << r.err;
  EXPECT_EQ(launch_events(job, "stop")[0]["cause"], "signal");
  expect_nothing_left(job);
}

// Ranks without an agent end themselves, and the launcher starts both again.
TEST(Launch, AKilledAgentIsReplaced) {
  Job job(0, launch_words(2, "", {"train.steps=40", "optim.schedule_steps=40"}));
  job.await_step(2);
  const int agent = [&] {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      if (entry.path().filename().string().find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream in(entry.path() / "cmdline", std::ios::binary);
      const std::string line{std::istreambuf_iterator<char>(in), {}};
      std::ifstream stat(entry.path() / "stat");
      const std::string text{std::istreambuf_iterator<char>(stat), {}};
      const bool child = text.find(") S " + std::to_string(job.pid()) + " ") != std::string::npos ||
                         text.find(") R " + std::to_string(job.pid()) + " ") != std::string::npos;
      if (child && line.find(std::string("\0agent\0", 7)) != std::string::npos) return std::stoi(entry.path().filename());
    }
    return 0;
  }();
  ASSERT_GT(agent, 0);
  kill(agent, SIGKILL);
  const RunResult r = job.wait(120);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(launch_events(job, "fault").size(), 1u) << r.err;
  EXPECT_EQ(job.metrics().size(), 40u);
  expect_nothing_left(job);
}

}  // namespace
}  // namespace hlat::test
