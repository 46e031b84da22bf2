// When a run saves and what it does about saves that fail: with a real saver of a tiny store, and a disk that fails when it is told to.
#include "train/run_saves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "backend/cpu/cpu_backend.h"
#include "base/file.h"
#include "base/machine.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/staging.h"
#include "support/known_state.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using Due = RunSaves::Due;
using Steps = std::vector<int64_t>;

// A run of one rank whose steps are a token each. `write` is the disk: what it throws fails a save.
struct SavingRun {
  explicit SavingRun(const CheckpointConfig& checkpoint)
      : memory(device, planned()), params(specs(), {}, memory.memory(), {}, ParamUse::training) {
    config.checkpoint = checkpoint;
    config.train.global_batch = config.train.seq_len = 1;
    put_known(params, device, 0, 1, 1);
  }
  static std::vector<ParamSpec> specs() { return {{.name = "a", .slice = Slice::whole({600, 100}), .group = 0}}; }
  static MemoryPlan planned() {
    Memory measured;
    const ParamStore store(specs(), {}, measured, {}, ParamUse::training);
    return measured.high_water();
  }

  // A process that begins after this step.
  void start(int64_t step, bool owns_start = true) {
    saves.reset();
    const auto disk = [this](uint64_t) {
      if (error != 0) fail_storage(error, "cannot write");
      std::this_thread::sleep_for(std::chrono::duration<double>(write_s));
    };
    saver = std::make_unique<Saver>(params, device, 0, 1, nullptr, SaveOptions{.staging_bytes = 1, .round_s = 0.01, .before_write = disk});
    const SavesSetup setup{.saver = *saver,
                           .checkpoints = dir.path("checkpoints"),
                           .weights = dir.path("weights"),
                           .run = "run",
                           .version = "0",
                           .config = "{}",
                           .records = {},
                           .owns_start = owns_start,
                           .tell = [this](const SaveNews& n) { news.push_back(n); }};
    saves.emplace(config, setup, step, true, [] { return OwnPosition(DataState()); });
  }
  void end_save() {
    saves->before_update(0);
    while (saves->busy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void save(Due what, int64_t step) {
    saves->begin(what, step, 1);
    end_save();
    saves->collect();
  }
  void fail_save(Due what, int64_t step, int with = EIO) {
    error = with;
    save(what, step);
    error = 0;
  }
  std::string finish(int64_t step, double patience_s = 60) {
    return saves->finish(step, 1, false, patience_s, [](int n) { return n; });
  }
  Steps checkpoints() const { return checkpoint_steps(dir.path("checkpoints")); }
  Steps copies() const { return checkpoint_steps(dir.path("weights")); }
  bool told(const std::string& part) const {
    return std::any_of(news.begin(), news.end(), [&](const SaveNews& n) { return n.text.find(part) != std::string::npos; });
  }

  test::TempDir dir;
  Config config;
  CpuDevice device;
  PlannedMemory memory;
  ParamStore params;
  std::atomic<int> error = 0;
  std::atomic<double> write_s = 0;
  std::vector<SaveNews> news;
  std::unique_ptr<Saver> saver;
  std::optional<RunSaves> saves;
};

CheckpointConfig nothing() {
  CheckpointConfig c;
  c.every = 0;
  c.at_end = false;
  return c;
}

TEST(RunSaves, CopiesOfTheWeightsLeaveTheTimeOfTheNextSaveAlone) {
  CheckpointConfig c = nothing();
  c.minutes = 0.2 / 60;
  c.weights_every_tokens = 10;
  SavingRun run(c);
  run.start(0);
  const double begin = now_s();
  while (now_s() - begin < 0.25) run.save(Due::weights, 10);
  EXPECT_EQ(run.saves->due(11), Due::training);
}

TEST(RunSaves, ACopyOfTheWeightsThatFailsTwiceIsStillOwedAtTheEnd) {
  CheckpointConfig c = nothing();
  c.weights_every_tokens = 10;
  SavingRun run(c);
  run.start(0);
  EXPECT_EQ(run.saves->due(9), Due::nothing);
  EXPECT_EQ(run.saves->due(10), Due::weights);
  run.fail_save(Due::weights, 10);
  run.fail_save(Due::weights, 12);
  EXPECT_EQ(run.finish(14), "");
  EXPECT_EQ(run.copies(), Steps{14});
}

TEST(RunSaves, ACopyOfTheWeightsThatTheProcessBeforeOwedIsMade) {
  CheckpointConfig c = nothing();
  c.weights_every_tokens = 10;
  SavingRun run(c);
  run.start(0);
  run.save(Due::weights, 10);
  run.save(Due::weights, 40);  // later than where the next process begins: of a life that was set aside
  run.start(25);
  EXPECT_EQ(run.saves->due(26), Due::weights) << "that of token 20";
  run.save(Due::weights, 26);
  EXPECT_EQ(run.saves->due(29), Due::nothing);
  run.start(28);
  EXPECT_EQ(run.saves->due(29), Due::nothing);
  EXPECT_EQ(run.saves->due(30), Due::weights);
  run.start(1005, false);
  EXPECT_EQ(run.saves->due(1006), Due::nothing) << "what came before a fork is not its own";
}

TEST(RunSaves, ACopyOfTheWeightsDoesNotEndTheRetryOfAFailedSave) {
  CheckpointConfig c = nothing();
  c.every = 10;
  c.weights_every_tokens = 11;
  SavingRun run(c);
  run.start(0);
  run.fail_save(Due::training, 10);
  run.save(Due::weights, 11);
  EXPECT_EQ(run.finish(12), "") << "at_end is false, but the save of step 10 was never made";
  EXPECT_EQ(run.checkpoints(), Steps{12});
  EXPECT_EQ(run.saves->saved_step(), 12);
}

TEST(RunSaves, NothingIsSavedAtTheEndWhereNothingIsOwed) {
  CheckpointConfig c = nothing();
  c.every = 10;
  SavingRun run(c);
  run.start(0);
  run.save(Due::training, 10);
  EXPECT_EQ(run.finish(12), "");
  EXPECT_EQ(run.checkpoints(), Steps{10});
}

TEST(RunSaves, ASaveThatEndsUnseenIsTakenForWhatItWas) {
  SavingRun run(nothing());
  run.start(0);
  run.saves->begin(Due::training, 10, 1);
  run.end_save();
  run.saves->begin(Due::weights, 11, 1);
  run.end_save();
  run.saves->collect();
  EXPECT_EQ(run.saves->saved_step(), 10);
  EXPECT_TRUE(run.told("saved the state of step 10"));
  EXPECT_TRUE(run.told("saved the weights of step 11"));
}

TEST(RunSaves, TheLastSaveMayTakeLongWhileItMakesProgress) {
  CheckpointConfig c = nothing();
  c.at_end = true;
  SavingRun run(c);
  run.start(0);
  run.write_s = 0.1;
  const double begin = now_s();
  EXPECT_EQ(run.finish(5, 0.4), "");
  EXPECT_GT(now_s() - begin, 0.4) << "or it is no test";
  EXPECT_EQ(run.checkpoints(), Steps{5});
}

TEST(RunSaves, ALastSaveThatHangsIsGivenUp) {
  CheckpointConfig c = nothing();
  c.at_end = true;
  SavingRun run(c);
  run.start(0);
  run.write_s = 2;
  EXPECT_EQ(run.finish(5, 0.2).find("a save has not ended after"), 0u);
  run.write_s = 0;
}

TEST(RunSaves, RetentionIsAppliedByTheEnd) {
  CheckpointConfig c = nothing();
  c.keep = 2;
  SavingRun run(c);
  run.start(0);
  for (const int64_t step : {1, 2, 3, 4}) run.save(Due::training, step);
  EXPECT_EQ(run.finish(4), "");
  EXPECT_EQ(run.checkpoints(), (Steps{3, 4}));
}

TEST(RunSaves, WhereAQuotaEndsASaveTheOldestCheckpointGoesThoughTheDiskHasRoom) {
  CheckpointConfig c = nothing();
  c.every = 10;
  c.keep = 2;
  SavingRun run(c);
  run.start(0);
  for (const int64_t step : {10, 20}) run.save(Due::training, step);
  run.fail_save(Due::training, 30, EDQUOT);
  for (const double limit = now_s() + 10; !run.told("to make room") && now_s() < limit;) run.saves->collect();
  EXPECT_EQ(run.checkpoints(), Steps{20});
  EXPECT_EQ(run.finish(30), "");
  EXPECT_TRUE(run.told("removed 1 of the oldest checkpoints to make room"));
  EXPECT_EQ(run.checkpoints(), (Steps{20, 30}));
}

TEST(RunSaves, AForkHasNoCheckpointOfItsOwnYet) {
  SavingRun run(nothing());
  run.start(1000, false);
  EXPECT_EQ(run.saves->saved_step(), 0);
  run.fail_save(Due::training, 1001);
  EXPECT_TRUE(run.told("the last checkpoint is none"));
  run.start(1000);
  EXPECT_EQ(run.saves->saved_step(), 1000);
}

TEST(BackgroundRemoval, OneThatHangsHoldsNobodyUp) {
  const auto released = std::make_shared<std::atomic<bool>>(false);
  {
    BackgroundRemoval removal;
    removal.begin("nowhere", [released] {
      while (!*released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return Steps{};
    });
    EXPECT_TRUE(removal.busy());
    EXPECT_FALSE(removal.wait(0.01));
    EXPECT_FALSE(removal.take_outcome());
  }
  *released = true;
}

TEST(BackgroundRemoval, TellsWhatWentWrong) {
  const test::TempDir dir;
  BackgroundRemoval removal;
  removal.begin(dir.path(), []() -> Steps { fail<FaultError>("no list"); });
  ASSERT_TRUE(removal.wait(60));
  EXPECT_EQ(removal.take_outcome().value_or(RemovalOutcome{}).problem, "no list");
  EXPECT_FALSE(removal.take_outcome()) << "told once";
}

TEST(RunSaves, AnUpdateWaitsWellBelowTheTimeAfterWhichPeersTakeARankForDead) {
  Config config;
  config.parallel.dp = 2;
  config.checkpoint.max_wait_s = 60;
  config.parallel.timeout_s = 600;
  EXPECT_EQ(longest_update_wait(config), 60);
  config.parallel.timeout_s = 50;
  EXPECT_EQ(longest_update_wait(config), 25);
  config.parallel.dp = 1;
  EXPECT_EQ(longest_update_wait(config), 60) << "it has none";
}

}  // namespace
}  // namespace hlat
