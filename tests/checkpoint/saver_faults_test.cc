// Saves that go wrong: an outcome on all ranks, no exception, no half of a checkpoint, the earlier ones untouched, and a next save works.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <future>
#include <thread>

#include "backend/cpu/cpu_backend.h"
#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/saver.h"
#include "support/known_state.h"
#include "support/temp_dir.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

constexpr int64_t kFaultRows = 600;  // of both tensors: several buffers of tiny staging

// A rank along dp with two buckets of state in host memory, and its saver.
struct SavingRank {
  SavingRank(Comm& world, const SaveOptions& options)
      : rank(world.rank()),
        ranks(world.size()),
        memory(device, planned()),
        params(specs(), {}, memory.memory(), sharding(), ParamUse::training),
        comm(world.split(0, world.rank(), "save")),
        commit(comm.get()),
        saver(params, device, rank, ranks, std::move(comm), options) {
    put_known(params, device, rank, ranks, 1);
  }
  static std::vector<ParamSpec> specs() {
    return {{.name = "a", .slice = Slice::whole({kFaultRows, 100}), .group = 0},
            {.name = "b", .slice = Slice::whole({kFaultRows, 100}), .group = 1}};
  }
  Sharding sharding() const { return {.shards = ranks, .shard = rank, .bucket_bytes = 1}; }
  MemoryPlan planned() const {
    Memory measured;
    const ParamStore store(specs(), {}, measured, sharding(), ParamUse::training);
    return measured.high_water();
  }
  void begin(const std::filesystem::path& parent, int64_t step) { saver.begin(save_request(parent, step)); }
  void update() {
    for (int b = 0; b < static_cast<int>(params.buckets().size()); ++b) saver.before_update(b);
  }
  SaveOutcome outcome() {
    EXPECT_TRUE(saver.wait(60));
    return saver.take_outcome().value_or(SaveOutcome{.problem = "there is none"});
  }
  void await_end() const {
    while (saver.busy()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  SaveOutcome save(const std::filesystem::path& parent, int64_t step) {
    begin(parent, step);
    update();
    SaveOutcome done = outcome();
    await_end();
    return done;
  }

  int rank, ranks;
  CpuDevice device;
  PlannedMemory memory;
  ParamStore params;
  std::unique_ptr<Comm> comm;
  Comm* commit;
  Saver saver;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void expect_good(const test::TempDir& dir, int64_t step) {
  Memory measured;
  const ParamStore whole(SavingRank::specs(), {}, measured, {}, ParamUse::training);
  expect_known(checkpoint_path(dir.path(), step), tensors_of(whole, CheckpointContent::training), 1);
}

bool is_left(const test::TempDir& dir, int64_t step) {
  return std::filesystem::exists(checkpoint_path(dir.path(), step)) || std::filesystem::exists(NewCheckpoint::folder_of(dir.path(), step));
}

// Step 1 is saved, step 2 fails on one rank, step 3 is saved again.
void expect_one_failure(int ranks, const SaveOptions& failing, int failing_rank, std::atomic<bool>& armed, const std::string& words,
                        bool disk_full, const test::TempDir& dir) {
  run_thread_ranks(ranks, [&](Comm& world) {
    SavingRank rank(world, world.rank() == failing_rank ? failing : SaveOptions{});
    EXPECT_EQ(rank.save(dir.path(), 1).problem, "");
    world.barrier();
    armed = true;
    const SaveOutcome bad = rank.save(dir.path(), 2);
    EXPECT_TRUE(has(bad.problem, fmt::format("rank {}: ", failing_rank))) << bad.problem;
    EXPECT_TRUE(has(bad.problem, words)) << bad.problem;
    EXPECT_EQ(bad.disk_full, disk_full);
    EXPECT_EQ(bad.step, 2);
    world.barrier();
    EXPECT_FALSE(is_left(dir, 2));
    armed = false;
    EXPECT_EQ(rank.save(dir.path(), 3).problem, "");
  });
  EXPECT_EQ(checkpoint_steps(dir.path()), (std::vector<int64_t>{1, 3}));
  expect_good(dir, 1);
  expect_good(dir, 3);
}

TEST(SaverFaults, ARankThatCannotWriteFailsTheSaveOnAllAndTheNextOneWorks) {
  for (const size_t staging : {size_t{1}, size_t{1} << 20})
    for (const int failing : {0, 2, 4}) {
      const test::TempDir dir;
      std::atomic<bool> armed = false;
      const auto write = [&](uint64_t before) {
        if (armed && (before > 0 || staging > 1)) fail_storage(EIO, "cannot write");
      };
      expect_one_failure(5, {.staging_bytes = staging, .before_write = write}, failing, armed, "cannot write: Input/output error", false,
                         dir);
    }
}

TEST(SaverFaults, ADiskThatFillsUpIsToldApart) {
  const test::TempDir dir;
  std::atomic<bool> armed = false;
  const auto write = [&](uint64_t) {
    if (armed) fail_storage(ENOSPC, "cannot write");
  };
  expect_one_failure(3, {.before_write = write}, 1, armed, "No space left on device", true, dir);
}

TEST(SaverFaults, AnythingThatIsThrownIsAnOutcome) {
  const test::TempDir dir;
  std::atomic<bool> armed = false;
  const auto write = [&](uint64_t) {
    if (armed) throw 7;
  };
  expect_one_failure(2, {.before_write = write}, 1, armed, "no known type", false, dir);
}

TEST(SaverFaults, AFileThatMayNotGrow) {
  const test::TempDir dir;
  run_thread_ranks(1, [&](Comm& world) {
    SavingRank rank(world, {});
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{.rlim_cur = 100000, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const SaveOutcome bad = rank.save(dir.path(), 1);
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old_action);
    EXPECT_TRUE(has(bad.problem, "rank_00000.safetensors: File too large")) << bad.problem;
    EXPECT_FALSE(is_left(dir, 1));
    EXPECT_EQ(rank.save(dir.path(), 2).problem, "");
  });
}

// A file system of this size for the life of the object, where this process may mount one.
struct SmallDisk {
  SmallDisk(std::string where, size_t bytes)
      : path(std::move(where)),
        mounted(mkdir(path.c_str(), 0777) == 0 && mount("tmpfs", path.c_str(), "tmpfs", 0, fmt::format("size={}", bytes).c_str()) == 0) {}
  ~SmallDisk() {
    if (mounted) umount(path.c_str());
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  std::string path;
  bool mounted;
};

TEST(SaverFaults, RoomIsLookedForBeforeAByteIsWritten) {
  const test::TempDir dir;
  const SmallDisk disk(dir.path("disk"), 1 << 20);
  if (!disk.mounted) GTEST_SKIP() << "no small file system can be mounted here";
  run_thread_ranks(2, [&](Comm& world) {
    std::atomic<int> writes = 0;
    SavingRank rank(world, {.before_write = [&](uint64_t) { ++writes; }});
    const SaveOutcome bad = rank.save(disk.path, 1);
    EXPECT_TRUE(bad.disk_full);
    EXPECT_TRUE(has(bad.problem, "has 1.0 MiB free, a checkpoint takes 1.5 MiB")) << bad.problem;
    EXPECT_EQ(writes, 0);
    world.barrier();
    EXPECT_TRUE(std::filesystem::is_empty(disk.path));
  });
}

TEST(SaverFaults, ADiskThatIsFilledMeanwhile) {
  const test::TempDir dir;
  const SmallDisk disk(dir.path("disk"), 2 << 20);
  if (!disk.mounted) GTEST_SKIP() << "no small file system can be mounted here";
  const std::string other = disk.path + "/of others";
  run_thread_ranks(2, [&](Comm& world) {
    std::atomic<bool> armed = true;
    const auto write = [&](uint64_t) {
      if (armed) std::ofstream(other) << std::string(size_t{3} << 20, 'x');
    };
    SavingRank rank(world, world.rank() == 1 ? SaveOptions{.before_write = write} : SaveOptions{});
    const SaveOutcome bad = rank.save(disk.path, 1);
    EXPECT_TRUE(bad.disk_full) << bad.problem;
    EXPECT_TRUE(has(bad.problem, "No space left on device")) << bad.problem;
    world.barrier();
    armed = false;
    if (world.rank() == 0) std::filesystem::remove(other);
    world.barrier();
    EXPECT_EQ(rank.save(disk.path, 2).problem, "");
  });
}

TEST(SaverFaults, AFolderThatCannotBeMade) {
  const test::TempDir dir;
  dir.write("file", "");
  run_thread_ranks(2, [&](Comm& world) {
    SavingRank rank(world, {});
    const SaveOutcome bad = rank.save(dir.path("file/checkpoints"), 1);
    EXPECT_TRUE(has(bad.problem, "rank 0: cannot ")) << bad.problem;
    EXPECT_FALSE(bad.disk_full);
    world.barrier();
    EXPECT_EQ(rank.save(dir.path(), 1).problem, "");
  });
  expect_good(dir, 1);
}

TEST(SaverFaults, AFolderWithoutPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "permissions do not stop root";
  const test::TempDir dir;
  const std::string closed = dir.path("closed");
  ASSERT_EQ(mkdir(closed.c_str(), 0555), 0);
  run_thread_ranks(2, [&](Comm& world) {
    SavingRank rank(world, {});
    EXPECT_TRUE(has(rank.save(closed, 1).problem, "Permission denied"));
  });
}

TEST(SaverFaults, AFolderThatIsRemovedWhileItIsWritten) {
  const test::TempDir dir;
  run_thread_ranks(3, [&](Comm& world) {
    std::atomic<bool> armed = true;
    const auto write = [&](uint64_t) {
      if (armed) std::filesystem::remove_all(dir.path("c"));
    };
    SavingRank rank(world, world.rank() == 1 ? SaveOptions{.before_write = write} : SaveOptions{});
    const SaveOutcome bad = rank.save(dir.path("c"), 1);
    EXPECT_TRUE(has(bad.problem, "No such file or directory")) << bad.problem;
    world.barrier();
    armed = false;
    EXPECT_EQ(rank.save(dir.path("c"), 2).problem, "");
  });
  EXPECT_EQ(checkpoint_steps(dir.path("c")), (std::vector<int64_t>{2}));
}

// A disk that hangs from the second write on until it is let go.
struct HangingDisk {
  SaveOptions options(size_t staging, double max_wait_s) {
    return {.staging_bytes = staging, .max_wait_s = max_wait_s, .round_s = 0.01, .before_write = [this](uint64_t before) {
              if (before > 0 && hangs) freed.wait();
            }};
  }
  void let_go() {
    hangs = false;
    release.set_value();
  }
  std::atomic<bool> hangs = true;
  std::promise<void> release;
  std::shared_future<void> freed = release.get_future().share();
};

TEST(SaverFaults, AHangingDiskCostsTheSaveAndNotTheTraining) {
  const test::TempDir dir;
  HangingDisk disk;
  run_thread_ranks(3, [&](Comm& world) {
    SavingRank rank(world, world.rank() == 1 ? disk.options(1, 0.05) : SaveOptions{.round_s = 0.01});
    rank.begin(dir.path(), 1);
    rank.update();  // gives up on rank 1
    const SaveOutcome bad = rank.outcome();
    EXPECT_TRUE(has(bad.problem, "rank 1: given up")) << bad.problem;
    if (world.rank() == 1) {
      EXPECT_GE(bad.update_wait_s, 0.05);
    }
    for (int step = 0; step < 3; ++step) rank.update();  // goes on
    EXPECT_TRUE(rank.saver.busy()) << "no other save begins";
    world.barrier();
    if (world.rank() == 1) disk.let_go();
    rank.await_end();
    world.barrier();
    EXPECT_FALSE(is_left(dir, 1));
    EXPECT_EQ(rank.save(dir.path(), 2).problem, "");
  });
  expect_good(dir, 2);
}

TEST(SaverFaults, WithAmpleStagingASlowDiskDelaysNothingButTheSave) {
  const test::TempDir dir;
  HangingDisk disk;
  run_thread_ranks(2, [&](Comm& world) {
    SavingRank rank(world, world.rank() == 1 ? disk.options(size_t{1} << 20, 60) : SaveOptions{.staging_bytes = 1 << 20, .round_s = 0.01});
    rank.begin(dir.path(), 1);
    rank.update();
    EXPECT_FALSE(rank.saver.wait(0.05));
    EXPECT_FALSE(rank.saver.take_outcome());
    EXPECT_TRUE(rank.saver.busy());
    EXPECT_TRUE(checkpoint_steps(dir.path()).empty()) << "no commit without all files";
    world.barrier();
    if (world.rank() == 1) disk.let_go();
    EXPECT_EQ(rank.outcome().problem, "");
  });
  expect_good(dir, 1);
}

TEST(SaverFaults, ADiskSlowerThanTheTimeLimitOfTheGroupIsNotADeadPeer) {
  const test::TempDir dir;
  run_thread_ranks(
      3,
      [&](Comm& world) {
        SaveOptions options{.round_s = 0.02};
        if (world.rank() == 1)
          options.before_write = [](uint64_t before) {
            if (before == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
          };
        SavingRank rank(world, options);
        rank.begin(dir.path(), 1);
        EXPECT_EQ(rank.outcome().problem, "");
      },
      1.5);
  expect_good(dir, 1);
}

TEST(SaverFaults, APeerThatIsGoneIsAnOutcomeAndNoSaveIsTriedAgain) {
  const test::TempDir dir;
  run_thread_ranks(
      3,
      [&](Comm& world) {
        SavingRank rank(world, {.round_s = 0.02});
        if (world.rank() == 2) rank.commit->cancel();
        rank.begin(dir.path(), 1);
        rank.update();
        EXPECT_NE(rank.outcome().problem, "");
        rank.await_end();
        rank.begin(dir.path(), 2);
        rank.update();
        const SaveOutcome next = rank.outcome();
        EXPECT_TRUE(has(next.problem, "the ranks cannot agree on saves any more")) << next.problem;
        EXPECT_EQ(next.step, 2);
      },
      0.5);
  EXPECT_TRUE(checkpoint_steps(dir.path()).empty());
}

TEST(SaverFaults, OneSaveAtATime) {
  const test::TempDir dir;
  HangingDisk disk;
  run_thread_ranks(1, [&](Comm& world) {
    SavingRank rank(world, disk.options(size_t{1} << 20, 60));
    rank.begin(dir.path(), 1);
    EXPECT_THROW(rank.begin(dir.path(), 2), CheckFailed);
    disk.let_go();
  });
  expect_good(dir, 1);  // the destructor waited for it
}

}  // namespace
}  // namespace hlat
