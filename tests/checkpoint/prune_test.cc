// hlat ckpt ls and prune: what is listed as whole, and what goes.
#include "checkpoint/prune.h"

#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/checkpoint_folder.h"
#include "support/small_checkpoint.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

class PruneCheckpoints : public testing::Test {
 protected:
  PruneCheckpoints() {
    SmallCheckpoint c = small_model(1);
    for (c.step = 10; c.step <= 60; c.step += 10) write_small(folder_, c);
    fs::create_directories(folder_ / "step_70.tmp");
    std::ofstream(folder_ / "step_70.tmp/part_00000.safetensors") << "12345";
    fs::create_directories(folder_ / "step_80");
    fs::create_directories(folder_ / "mine");
  }
  static std::vector<int64_t> steps(const std::vector<ListedCheckpoint>& list) {
    std::vector<int64_t> out;
    for (const ListedCheckpoint& c : list) out.push_back(c.step);
    return out;
  }

  const TempDir dir_;
  const fs::path folder_ = fs::path(dir_.path("checkpoints"));
};

using Steps = std::vector<int64_t>;

TEST_F(PruneCheckpoints, TheListHasWhatThereIs) {
  fs::resize_file(folder_ / "step_20/part_00000.safetensors", 5000);
  fs::remove(folder_ / "step_30/part_00000.safetensors");
  flip_byte(folder_ / "step_40/index.json", 100);
  const std::vector<ListedCheckpoint> list = list_checkpoints(folder_);
  EXPECT_EQ(steps(list), (Steps{10, 20, 30, 40, 50, 60, 70, 80}));
  EXPECT_TRUE(list[0].whole());
  EXPECT_EQ(list[0].tokens, 1280);
  EXPECT_EQ(list[0].loss, 3.25);
  EXPECT_EQ(list[0].content, CheckpointContent::training);
  EXPECT_EQ(list[0].bytes, fs::file_size(folder_ / "step_10/part_00000.safetensors"));
  EXPECT_NE(list[1].problem.find("part_00000.safetensors has 5000 bytes instead of "), std::string::npos) << list[1].problem;
  EXPECT_EQ(list[2].problem, "part_00000.safetensors is missing");
  EXPECT_NE(list[3].problem.find("index.json"), std::string::npos) << list[3].problem;
  EXPECT_TRUE(list[6].leftover && list[7].leftover);
  EXPECT_EQ(list[6].bytes, 5u);
}

TEST_F(PruneCheckpoints, TheLatestAndEveryManyStay) {
  const PrunePlan plan = plan_prune(folder_, 2, 30);
  EXPECT_EQ(steps(plan.removed), (Steps{10, 20, 40}));
  EXPECT_EQ(steps(plan.kept), (Steps{30, 50, 60}));
  EXPECT_EQ(steps(plan.leftovers), (Steps{70, 80}));
  EXPECT_EQ(checkpoint_steps(folder_).size(), 6u) << "a plan removes nothing";
  prune(plan);
  EXPECT_EQ(checkpoint_steps(folder_), (Steps{30, 50, 60}));
  EXPECT_TRUE(leftovers(folder_).empty());
  EXPECT_TRUE(fs::exists(folder_ / "mine")) << "not ours";
}

TEST_F(PruneCheckpoints, DamagedOnesNeverPushOutGoodOnes) {
  fs::remove(folder_ / "step_60/part_00000.safetensors");
  flip_byte(folder_ / "step_50/index.json", 100);
  const PrunePlan plan = plan_prune(folder_, 2, 0);
  EXPECT_EQ(steps(plan.kept), (Steps{30, 40}));
  EXPECT_EQ(steps(plan.damaged), (Steps{50, 60}));
  prune(plan);
  EXPECT_EQ(checkpoint_steps(folder_), (Steps{30, 40, 50, 60}));
}

}  // namespace
}  // namespace hlat::test
