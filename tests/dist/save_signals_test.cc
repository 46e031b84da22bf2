// Signals that end a run which saves: preemption, Ctrl-C, a second one, one rank of several, mpirun itself, a disk too slow for the time
// that is left, a save that is under way when the signal comes, and the evaluation after the last step.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "base/signals.h"
#include "dist/saving_run.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

SavingRun::Words endless_saving(const SavingRun::Words& more = {}) {
  SavingRun::Words words = {"train.steps=1000000", "optim.schedule_steps=1000000", "checkpoint.keep=100"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Every step that was done is saved, once, and the same command goes on with the next.
void expect_saved_and_resumable(const SavingRun& run) {
  const int64_t last = run.metrics().back()["step"];
  EXPECT_EQ(run.latest(), last);
  EXPECT_NO_THROW(run.content(last));
  EXPECT_EQ(run.events("end").back()["step"], last);
  EXPECT_EQ(run.events("save_failed").size(), 0u);
  const std::unique_ptr<Job> again = run.start();
  run.await_step(last + 1);
  kill_all(*again);
  again->wait();
  EXPECT_EQ(run.metrics()[static_cast<size_t>(last)]["step"], last + 1);
}

TEST(SaveSignals, PreemptionSavesAndHasItsOwnExitCode) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    const SavingRun run(0, endless_saving());
    const std::unique_ptr<Job> job = run.start();
    run.await_step(3);
    kill(job->pid(), signal);
    const RunResult r = job->wait();
    EXPECT_EQ(r.exit_code, 6) << r.err;
    EXPECT_EQ(run.events("end").back()["exit_code"], 6);
    expect_saved_and_resumable(run);
  }
}

TEST(SaveSignals, CtrlCSavesAndEndsAsAShellExpects) {
  const SavingRun run(0, endless_saving());
  const std::unique_ptr<Job> job = run.start();
  run.await_step(3);
  kill(job->pid(), SIGINT);
  const RunResult r = job->wait();
  EXPECT_EQ(r.exit_code, 128 + SIGINT) << r.err;
  expect_saved_and_resumable(run);
}

TEST(SaveSignals, ASecondSignalEndsItAtOnceWhateverTheDiskDoes) {
  const SavingRun run(0, endless_saving());
  const std::unique_ptr<Job> job = run.start(IoFault{.action = "hang", .call = "fsync"});
  run.await_step(3);
  kill(job->pid(), SIGTERM);
  ASSERT_TRUE(within(60, [&] { return run.struck(); })) << "the save hangs";
  std::this_thread::sleep_for(EndSignals::kRepeated);  // before, it would be the first once more
  kill(job->pid(), SIGTERM);
  const RunResult r = job->wait(20);
  EXPECT_EQ(r.exit_code, 128 + SIGTERM) << r.err;
  EXPECT_NE(run.log().find("the second signal"), std::string::npos) << run.log();
  EXPECT_EQ(run.latest(), 0);
}

TEST(SaveSignals, ARunThatIsNotSavedInTimeSaysSo) {
  const SavingRun run(0, endless_saving({"checkpoint.grace_s=2", "checkpoint.every=2"}));
  const std::unique_ptr<Job> job = run.start(IoFault{.action = "hang", .call = "fsync", .at = 6});
  ASSERT_TRUE(within(60, [&] { return run.struck(); }));
  const int64_t last = run.latest();
  kill(job->pid(), SIGTERM);
  const RunResult r = job->wait(30);
  EXPECT_EQ(r.exit_code, 128 + SIGTERM) << r.err;
  EXPECT_NE(r.err.find("checkpoint.grace_s"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("its last checkpoint is that of step " + std::to_string(last)), std::string::npos) << r.err;
  EXPECT_EQ(run.events("end").back()["exit_code"], 128 + SIGTERM);
  EXPECT_NO_THROW(run.content(last));
}

TEST(SaveSignals, ASaveUnderWayIsFinishedAndNotBegunAgain) {
  const SavingRun run(0, endless_saving({"checkpoint.every=4"}));
  const std::unique_ptr<Job> job = run.start(IoFault{.action = "sleep", .call = "write", .ms = 700});
  ASSERT_TRUE(within(60, [&] { return fs::exists(run.checkpoints() + "/step_4.tmp"); }));
  kill(job->pid(), SIGTERM);
  const RunResult r = job->wait();
  EXPECT_EQ(r.exit_code, 6) << r.err;
  const std::vector<int64_t> saved = run.saved();
  ASSERT_FALSE(saved.empty());
  EXPECT_EQ(saved.front(), 4) << "what was under way";
  EXPECT_LE(saved.size(), 2u) << "and the last step, if that is another";
  EXPECT_EQ(run.events("save").size(), saved.size()) << "each once";
  expect_saved_and_resumable(run);
}

TEST(SaveSignals, OneOfFourRanksIsEnough) {
  for (const auto& [signal, code] : std::map<int, int>{{SIGUSR1, 6}, {SIGINT, 128 + SIGINT}}) {
    const SavingRun run(4, endless_saving({"parallel.tp=2"}));
    const std::unique_ptr<Job> job = run.start();
    run.await_step(2);
    kill(job->ranks().at(3), signal);
    const RunResult r = job->wait();
    EXPECT_EQ(r.exit_code, code) << r.err;
    expect_saved_and_resumable(run);
  }
}

// It is part of the run: without it nothing is finished, and the same command makes it up.
TEST(SaveSignals, TheEvaluationAfterTheLastStepIsCutOffAndMadeUpFor) {
  const TempDir given;
  given.write("pairs.jsonl", "{\"start\": \"the fox\", \"right\": \"yelped happy\", \"wrong\": \"happy forest\"}\n");
  given.write("pairs.yaml",
              "task: pairs\ntitle: pairs\ngroup: own\nversion: 1\nkind: choice\ndata: {file: pairs.jsonl}\n"
              "prompt: \"{{ start }}\"\nchoices: [\"{{ right }}\", \"{{ wrong }}\"]\ngold: \"{{ 0 }}\"\nmetrics: [acc]\n");
  // Where the end alone is not saved (at_end=false, a save every 3 steps) the signal asks for it.
  for (const auto& [ranks, at_end] : {std::pair{0, "true"}, {2, "true"}, {0, "false"}, {2, "false"}}) {
    const SavingRun run(ranks,
                        {"eval.at_end=true", "eval.tasks=pairs", "eval.data=" + given.path(), "eval.task_dir=" + given.path(),
                         "fault.inject=hang rank=0 step=5 seconds=4", "checkpoint.every=3", std::string("checkpoint.at_end=") + at_end});
    const std::unique_ptr<Job> job = run.start();
    ASSERT_TRUE(within(120, [&] { return fs::exists(run.folder() + "/faults.jsonl"); })) << "its last step is under way";
    kill(job->pid(), SIGUSR1);
    const RunResult r = job->wait();
    EXPECT_EQ(run.latest(), 5);
    EXPECT_EQ(run.events("end").back()["exit_code"], 6) << run.log();
    EXPECT_NE(run.log().find("step 5: the evaluation of tasks was stopped"), std::string::npos) << run.log();
    EXPECT_FALSE(fs::exists(run.folder() + "/eval.jsonl") && fs::file_size(run.folder() + "/eval.jsonl") > 0);
    EXPECT_TRUE(ranks > 0 || r.exit_code == 6) << r.exit_code << r.err;
    const RunResult rest = run.run();
    EXPECT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_NE(slurp(run.folder() + "/eval.jsonl").find("\"eval/pairs/acc\""), std::string::npos);
    EXPECT_EQ(run.losses().size(), 5u);
    EXPECT_EQ(run.events("end").back()["exit_code"], 0);
  }
}

TEST(SaveSignals, MpirunHandsOnSigusr1AndWaitsAsToldAfterSigterm) {
  for (const int signal : {SIGUSR1, SIGTERM}) {
    const SavingRun run(2, endless_saving());
    const std::unique_ptr<Job> job = run.start({}, {"--mca", "odls_base_sigkill_timeout", "4"});
    run.await_step(2);
    kill(job->pid(), signal);
    job->wait(120);  // mpirun may take the timeout to see that its ranks are gone
    EXPECT_EQ(run.events("end").back()["exit_code"], 6) << run.log();
    expect_saved_and_resumable(run);
  }
}

}  // namespace
}  // namespace hlat::test
