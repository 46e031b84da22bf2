// Disks that fail while a run saves: full, read-only, gone, slow, hanging, with I/O errors. Training goes on to its last step with the
// losses of a run on a good disk, what happened is told in log.txt, events.jsonl and metrics.jsonl, and the last good checkpoint loads.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <csignal>

#include "checkpoint/checkpoint_folder.h"
#include "dist/saving_run.h"
#include "support/checkpoint_content.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 12;

SavingRun::Words saving(const SavingRun::Words& more = {}) {
  SavingRun::Words words = {"train.steps=12", "optim.schedule_steps=12", "checkpoint.every=2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The run on a good disk. Which steps are saved depends on how fast the disk is, so the state after a step is that of a run which ends
// there.
class Good {
 public:
  static const std::vector<double>& losses() {
    static const std::vector<double> all = ended_after(kSteps).losses();
    return all;
  }
  static const std::string& content(int64_t step) {
    static std::map<int64_t, std::string> known;
    const auto found = known.find(step);
    return found != known.end() ? found->second : known[step] = ended_after(step).content(step);
  }
  static uint64_t bytes() {  // of a checkpoint
    static const uint64_t bytes = [] {
      uint64_t sum = 0;
      for (const auto& file : fs::directory_iterator(ended_after(kSteps).checkpoints() + "/step_12")) sum += fs::file_size(file);
      return sum;
    }();
    return bytes;
  }

 private:
  static const SavingRun& ended_after(int64_t step) {
    static std::map<int64_t, SavingRun> runs;
    const auto [run, is_new] = runs.try_emplace(step, 0, saving({"train.steps=" + std::to_string(step)}));
    if (const RunResult r = is_new ? run->second.run() : RunResult{}; r.exit_code != 0) throw std::runtime_error(r.err);
    return run->second;
  }
};

bool has_failed_save(const nlohmann::json& line) { return line.contains("save_failed") && !line["save_failed"].is_null(); }

void expect_trained(const SavingRun& run) { EXPECT_EQ(run.losses(), Good::losses()) << "the losses of a run on a good disk"; }

// The checkpoints that are there are good ones.
void expect_good(const SavingRun& run, const std::string& parent = "") {
  const std::string dir = parent.empty() ? run.checkpoints() : parent;
  for (const int64_t step : checkpoint_steps(dir)) {
    const bool same = checkpoint_content(checkpoint_path(dir, step)) == Good::content(step);
    EXPECT_TRUE(same) << "step " << step;
  }
}

void expect_told(const SavingRun& run, const std::string& words) {
  const auto events = run.events("save_failed");
  ASSERT_FALSE(events.empty());
  EXPECT_NE(events.front()["reason"].get<std::string>().find(words), std::string::npos) << events.front();
  EXPECT_NE(run.log().find(words), std::string::npos) << run.log();
}

// Where steps come after the failure is known: the lines of metrics are those of steps.
void expect_told_by_step(const SavingRun& run, const std::string& words) {
  expect_told(run, words);
  const auto metrics = run.metrics();
  EXPECT_TRUE(std::any_of(metrics.begin(), metrics.end(), has_failed_save)) << "save_failed in metrics.jsonl";
}

void expect_last_save_failed(const RunResult& r) {
  EXPECT_EQ(r.exit_code, 4) << r.err;
  EXPECT_NE(r.err.find("trained to step 12, but the last save failed"), std::string::npos) << r.err;
}

// A file system of its own, in memory, for checkpoints.
class SmallDisk {
 public:
  // at: an existing folder; empty: one of its own.
  explicit SmallDisk(uint64_t bytes, const std::string& at = "") : root_(at.empty() ? dir_.path() : at) {
    mounted_ = mount("tmpfs", root_.c_str(), "tmpfs", 0, ("size=" + std::to_string(bytes)).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(root_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  std::string path() const { return dir_.path("checkpoints"); }
  // Not while a file is open for writing.
  bool set_read_only(bool on) const {
    return mount(nullptr, root_.c_str(), nullptr, on ? MS_REMOUNT | MS_RDONLY : MS_REMOUNT, nullptr) == 0;
  }

 private:
  TempDir dir_;
  std::string root_;
  bool mounted_ = false;
};

constexpr const char* kNoMount = "file systems cannot be mounted here";

TEST(SaveFaults, ErrorsOfTheDiskAreToldAndLaterSavesSucceed) {
  const std::vector<std::pair<IoFault, std::string>> faults = {
      {{.action = "ENOSPC", .call = "write", .at = 4, .calls = 1}, "No space left on device"},
      {{.action = "EIO", .call = "fsync", .at = 6, .calls = 1}, "Input/output error"},
      {{.action = "EACCES", .call = "mkdir", .at = 3, .calls = 1}, "Permission denied"},
      {{.action = "EROFS", .call = "open", .at = 2, .calls = 1, .path = ".safetensors"}, "Read-only file system"},
      {{.action = "EIO", .call = "rename", .at = 2, .calls = 1}, "Input/output error"}};
  for (const auto& [fault, words] : faults) {
    SCOPED_TRACE(fault.action + " of " + fault.call);
    const SavingRun run(0, saving({"train.global_batch=32"}));
    const RunResult r = run.run(fault);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    ASSERT_TRUE(run.struck());
    EXPECT_EQ(run.losses().size(), static_cast<size_t>(kSteps));
    expect_told_by_step(run, words);
    EXPECT_EQ(run.latest(), kSteps);
    EXPECT_NO_THROW(run.content(kSteps));
    EXPECT_FALSE(fs::exists(run.checkpoints() + "/step_2.tmp"));
  }
}

// Lines of steps wait in memory; those of metrics as those for TensorBoard.
TEST(SaveFaults, RecordsOfStepsAreHeldWhileTheDiskIsFull) {
  for (const char* file : {"metrics.jsonl", "events.out"}) {
    SCOPED_TRACE(file);
    const SavingRun run(0, saving({"run.tensorboard=true"}));
    const RunResult r = run.run(IoFault{.action = "ENOSPC", .call = "write", .at = 3, .calls = 2, .path = file});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    ASSERT_TRUE(run.struck());
    EXPECT_EQ(run.losses().size(), static_cast<size_t>(kSteps)) << "each step once, in order";
    EXPECT_NE(run.log().find("No space left on device"), std::string::npos) << run.log();
    EXPECT_NE(run.log().find("are held until there is room"), std::string::npos) << run.log();
  }
}

TEST(SaveFaults, ALastSaveThatFailsIsAFaultWithWords) {
  const SavingRun run(0, saving());
  const RunResult r = run.run(IoFault{.action = "EIO", .call = "write", .at = 5});
  expect_last_save_failed(r);
  EXPECT_NE(r.err.find("the last checkpoint is that of step"), std::string::npos) << r.err;
  expect_trained(run);
  expect_told(run, "Input/output error");
  expect_good(run);
  EXPECT_GT(run.latest(), 0);
  EXPECT_EQ(run.events("end").back()["exit_code"], 4);
  // The disk is well again: the same command goes on.
  const int64_t before = run.latest();
  const RunResult again = run.run();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(nlohmann::json::parse(again.out)["first_step"], before + 1);
  EXPECT_EQ(run.content(kSteps) == Good::content(kSteps), true);
}

TEST(SaveFaults, AFullDiskKeepsTheLastGoodCheckpoint) {
  const SmallDisk disk(Good::bytes() * 8 / 5);
  if (!disk.mounted()) GTEST_SKIP() << kNoMount;
  const SavingRun run(0, saving({"checkpoint.keep=1", "checkpoint.dir=" + disk.path()}));
  expect_last_save_failed(run.run());
  expect_trained(run);
  expect_told(run, "free, a checkpoint takes");
  EXPECT_EQ(checkpoint_steps(disk.path()).size(), 1u);
  expect_good(run, disk.path());
}

TEST(SaveFaults, TheOldestMakesRoomOnAFullDisk) {
  const SmallDisk disk(Good::bytes() * 13 / 5);
  if (!disk.mounted()) GTEST_SKIP() << kNoMount;
  const SavingRun run(0, saving({"checkpoint.keep=2", "checkpoint.dir=" + disk.path()}));
  const RunResult r = run.run();
  EXPECT_EQ(r.exit_code, 0) << r.err;
  expect_trained(run);
  expect_told(run, "free, a checkpoint takes");
  EXPECT_NE(run.log().find("removed 1 of the oldest checkpoints to make room"), std::string::npos) << run.log();
  EXPECT_EQ(checkpoint_steps(disk.path()).back(), kSteps);
  expect_good(run, disk.path());
}

TEST(SaveFaults, AReadOnlyFolderIsToldAndTrainingGoesOn) {
  const SavingRun run(0, saving({"train.steps=1000000", "optim.schedule_steps=1000000", "checkpoint.every=50", "checkpoint.keep=3"}));
  fs::create_directories(run.checkpoints());
  const SmallDisk disk(Good::bytes() * 50, run.checkpoints());  // inside the run folder, where no lease keeps a file of it open
  if (!disk.mounted()) GTEST_SKIP() << kNoMount;
  const std::unique_ptr<Job> job = run.start();
  run.await_step(60);
  ASSERT_TRUE(within(60, [&] { return disk.set_read_only(true); }));
  ASSERT_TRUE(within(60, [&] { return !run.events("save_failed").empty(); }));
  const int64_t last = checkpoint_steps(run.checkpoints()).back(), then = run.metrics().back()["step"];
  run.await_step(then + 3);
  EXPECT_NO_THROW(checkpoint_content(checkpoint_path(run.checkpoints(), last)));
  expect_told_by_step(run, "Read-only file system");
  ASSERT_TRUE(disk.set_read_only(false));
  ASSERT_TRUE(within(60, [&] { return checkpoint_steps(run.checkpoints()).back() > last; })) << "it saves again";
  kill(job->pid(), SIGTERM);
  EXPECT_EQ(job->wait().exit_code, 6);
}

TEST(SaveFaults, AFolderThatIsRemovedWhileTrainingIsMadeAgain) {
  const SavingRun run(0, saving({"train.steps=400", "optim.schedule_steps=400", "checkpoint.every=1"}));
  const std::unique_ptr<Job> job = run.start();
  for (int64_t step = 2; step < 40; step += 2) {
    run.await_step(step);
    std::error_code while_it_is_written;
    fs::remove_all(run.checkpoints(), while_it_is_written);
  }
  const RunResult r = job->wait(240);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(run.losses().size(), 400u);
  EXPECT_EQ(run.latest(), 400);
  EXPECT_NO_THROW(run.content(400));
}

TEST(SaveFaults, ASlowDiskDelaysTheNextSaveAndNotTheTraining) {
  const SavingRun run(0, saving({"checkpoint.every=1"}));
  const RunResult r = run.run(IoFault{.action = "sleep", .call = "write", .ms = 400});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  expect_trained(run);
  expect_good(run);
  EXPECT_EQ(run.latest(), kSteps);
  EXPECT_LT(run.events("save").size(), static_cast<size_t>(kSteps)) << "some steps passed while one was saved";
  EXPECT_NE(run.log().find("has not ended after"), std::string::npos) << run.log();
}

// The calls of a hanging disk never return: the run ends all the same.
TEST(SaveFaults, AHangingFsyncHoldsUpNeitherTheTrainingNorTheEnd) {
  const SavingRun run(0, saving({"parallel.timeout_s=5"}));
  const RunResult r = run.run(IoFault{.action = "hang", .call = "fsync", .at = 6});
  expect_last_save_failed(r);
  expect_trained(run);
  EXPECT_NE(r.err.find("has not ended after 5"), std::string::npos) << r.err;
  expect_good(run);
  EXPECT_GT(run.latest(), 0);
  EXPECT_EQ(run.run().exit_code, 0) << "the same command goes on when the disk is well again";
  EXPECT_EQ(run.content(kSteps) == Good::content(kSteps), true);
}

TEST(SaveFaults, OneOfFourRanksCannotWrite) {
  const SavingRun run(4, saving({"parallel.tp=2"}));
  const RunResult r = run.run(IoFault{.action = "ENOSPC", .call = "write", .at = 6, .rank = 3});
  EXPECT_EQ(r.exit_code, 4) << r.err;
  EXPECT_EQ(run.losses().size(), static_cast<size_t>(kSteps));
  expect_told(run, "rank 3: ");
  EXPECT_GT(run.latest(), 0);
  EXPECT_NO_THROW(run.content(run.latest()));
  EXPECT_EQ(run.run().exit_code, 0);
}

}  // namespace
}  // namespace hlat::test
