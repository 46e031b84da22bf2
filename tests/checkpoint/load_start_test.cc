// Falling back from damaged checkpoints: over more than one, across the place a run went back to, and where the damaged ones go.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "support/message_of.h"
#include "support/small_checkpoint.h"
#include "support/starter.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

class LoadStart : public testing::Test {
 protected:
  LoadStart() { save_two(parent()); }
  fs::path parent() const { return dir_.path("c"); }

  // A third checkpoint, after the others, whose index is sound while its files are those of another step.
  void add_damaged(const std::function<void(CheckpointIndex&)>& change = {}) {
    const fs::path from = checkpoint_path(parent(), kNewest), to = checkpoint_path(parent(), kDamaged);
    fs::copy(from, to);
    CheckpointIndex index = read_index(from);
    index.step = kDamaged;
    if (change) change(index);
    std::ofstream(to / kIndexName, std::ios::binary | std::ios::trunc) << index.save();
  }

  static constexpr int64_t kDamaged = kNewest + 2;
  static constexpr double kOtherRate = 2e-3;
  TempDir dir_;
};

void change_rate(CheckpointIndex& index, double rate) {
  auto config = nlohmann::ordered_json::parse(index.config);
  config["optim"]["lr"] = rate;
  index.config = config.dump();
}

TEST_F(LoadStart, FallsBackOverASecondOneWhoseIndexIsDamaged) {
  add_damaged();
  flip_byte(checkpoint_path(parent(), kNewest) / kIndexName, 50);
  Starter starter(parent());
  const auto [start, state] = starter.load();
  EXPECT_EQ(state.step, kOlder);
  EXPECT_EQ(start.kind, StartKind::continued);
  ASSERT_EQ(start.damaged.size(), 2u);
  EXPECT_EQ(start.damaged[0].folder, checkpoint_path(parent(), kDamaged));
  EXPECT_EQ(start.damaged[1].folder, checkpoint_path(parent(), kNewest));
}

TEST_F(LoadStart, SaysWhenNoneIsWhole) {
  add_damaged();
  for (const int64_t step : {kNewest, kOlder}) flip_byte(checkpoint_path(parent(), step) / kIndexName, 50);
  Starter starter(parent());
  EXPECT_THROW(starter.load(), DamagedCheckpoint);
}

TEST_F(LoadStart, FallsBackAcrossARewindThatChangedTheOptimizer) {
  add_damaged([&](CheckpointIndex& index) {
    change_rate(index, kOtherRate);
    index.records.push_back({"origin", 1, R"({"kind":"state","asked":"4","run":"r","step":4})"});
  });
  Starter starter(parent());
  starter.config().optim.lr = kOtherRate;
  const auto [start, state] = starter.load();
  EXPECT_EQ(state.step, kNewest);
  EXPECT_EQ(start.kind, StartKind::rewind);
  ASSERT_EQ(start.records.size(), 1u) << "the same command goes on with it";
}

TEST_F(LoadStart, WithoutARewindAnotherOptimizerIsRefused) {
  add_damaged([&](CheckpointIndex& index) { change_rate(index, kOtherRate); });
  Starter starter(parent());
  starter.config().optim.lr = kOtherRate;
  EXPECT_NE(message_of([&] { starter.load(); }).find("optim.lr"), std::string::npos);
}

TEST_F(LoadStart, DamagedOnesOfTheSameStepAreAllKept) {
  Config config = one_layer();
  config.checkpoint.dir = parent();
  StartPoint start;
  start.kind = StartKind::continued;
  start.damaged = {{checkpoint_path(parent(), kNewest), "damaged"}};
  const std::string folder = checkpoint_path(parent(), kNewest);
  for (const std::string& name : {folder + ".damaged", folder + ".damaged_2", folder + ".damaged_3"}) {
    fs::create_directories(folder);
    std::ofstream(folder + "/" + std::string(kIndexName), std::ios::app) << name;
    set_later_aside(start, config);
    EXPECT_FALSE(fs::exists(folder));
    EXPECT_TRUE(slurp(name + "/" + std::string(kIndexName)).ends_with(name)) << name;
  }
}

}  // namespace
}  // namespace hlat::test
