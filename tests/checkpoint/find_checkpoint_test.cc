// From what a user gives to a checkpoint, and what is said when there is none.
#include "checkpoint/find_checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/checkpoint_folder.h"
#include "support/message_of.h"
#include "support/small_checkpoint.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

// A run with checkpoints of steps 100 and 200, weights of step 150, and the rest of a save.
class FindCheckpoint : public testing::Test {
 protected:
  FindCheckpoint() {
    SmallCheckpoint c;
    c.tensors = {{"w", {1}, {1}}};
    for (const int64_t step : {100, 200}) {
      c.step = step;
      write_small(run_ / "checkpoints", c);
    }
    c.step = 150;
    write_small(run_ / "weights", c);
    fs::create_directories(run_ / "checkpoints/step_300.tmp");
    fs::create_directories(run_ / "checkpoints/step_400");
  }
  std::string says(const std::string& given, std::optional<int64_t> step = {}) const {
    return message_of([&] { find_checkpoint(given, step); });
  }

  const TempDir dir_;
  const fs::path run_ = fs::path(dir_.path("run"));
  const fs::path steps_ = run_ / "checkpoints";
};

TEST_F(FindCheckpoint, ARunFolderMeansItsLatestOrTheStepThatIsAskedFor) {
  EXPECT_EQ(find_checkpoint(run_.string()), steps_ / "step_200");
  EXPECT_EQ(find_checkpoint(steps_.string()), steps_ / "step_200");
  EXPECT_EQ(find_checkpoint((steps_ / "step_100").string()), steps_ / "step_100");
  EXPECT_EQ(find_checkpoint(run_.string(), 100), steps_ / "step_100");
  EXPECT_EQ(find_checkpoint(run_.string(), 150), run_ / "weights/step_150");
  EXPECT_EQ(checkpoint_folders(run_.string()), (std::vector<fs::path>{steps_, run_ / "weights"}));
}

TEST_F(FindCheckpoint, ARunWhoseConfigNamesAnotherFolder) {
  const fs::path other = dir_.path("other");
  fs::create_directories(other);
  std::ofstream(other / "config.yaml") << "checkpoint: {dir: " << steps_.string() << "}\n";
  EXPECT_EQ(find_checkpoint(other.string()), steps_ / "step_200");
  std::ofstream(run_ / "config.yaml") << "checkpoint: {dir: " << steps_.string() << "/}\n";
  EXPECT_EQ(checkpoint_folders(run_.string()).size(), 2u) << "the same folder is not listed twice";
}

TEST_F(FindCheckpoint, WhatThereIsInstead) {
  EXPECT_EQ(says(""), "the path of a checkpoint is empty");
  EXPECT_EQ(says(run_.string(), 170), steps_.string() + " has no checkpoint of step 170; the nearest is the latest, step 200");
  EXPECT_EQ(says((steps_ / "step_120").string()),
            (steps_ / "step_120").string() + ": there is no such folder; the nearest is step 100, the latest 200");
  EXPECT_EQ(says((steps_ / "latest").string()),
            (steps_ / "latest").string() + ": there is no such folder; the latest checkpoint there is " + (steps_ / "step_200").string());
  EXPECT_EQ(says(dir_.path("rum")), dir_.path("rum") + ": there is no such folder; did you mean " + run_.string() + "?");
  EXPECT_EQ(says(dir_.path("x/y/z")), dir_.path("x/y/z") + ": there is no such folder; there is no folder " + dir_.path("x"));
  EXPECT_EQ(says((steps_ / "step_100").string(), 100),
            (steps_ / "step_100").string() + " is a checkpoint itself; a step is chosen in the folder of a run");
  const std::string index = (steps_ / "step_100/index.json").string();
  EXPECT_EQ(says(index), index + " is a file; a checkpoint is a folder: " + (steps_ / "step_100").string());
}

TEST_F(FindCheckpoint, FoldersThatAreNoCheckpoints) {
  EXPECT_EQ(says((steps_ / "step_300.tmp").string()),
            (steps_ / "step_300.tmp").string() + " is what a save that did not end has left over, and no checkpoint");
  EXPECT_EQ(says((steps_ / "step_400").string()),
            (steps_ / "step_400").string() + " has no index.json: it is no checkpoint, but was left over by a process that died");
  EXPECT_EQ(says(dir_.path()), dir_.path() +
                                   ": no checkpoint is here: there is no index.json, and no step_N in it, in checkpoints or in "
                                   "weights");
  for (const int64_t step : {100, 200}) remove_checkpoint(checkpoint_path(steps_, step));
  EXPECT_EQ(says(steps_.string()), steps_.string() + " has no checkpoint yet, only what saves that did not end have left over");
}

TEST_F(FindCheckpoint, AFolderOfHuggingFaceIsImportedFirst) {
  const std::string model = dir_.path("llama");
  fs::create_directories(model);
  std::ofstream(model + "/config.json") << "{}";
  std::ofstream(model + "/model.safetensors") << "x";
  EXPECT_EQ(says(model), model + " is a folder of Hugging Face: make a checkpoint of it first, with hlat ckpt import " + model + " DST");
}

TEST_F(FindCheckpoint, TheRunOfAFolderOfCheckpoints) {
  EXPECT_EQ(run_folder_of(steps_), fs::path()) << "nothing says that this is a run folder";
  std::ofstream(run_ / "run.lock") << "{}";
  EXPECT_EQ(run_folder_of(steps_), fs::weakly_canonical(run_));
  SmallCheckpoint c;
  c.tensors = {{"w", {1}, {1}}};
  c.config = "{\"run\":{\"dir\":\"" + run_.string() + "\"}}";
  write_small(dir_.path("elsewhere"), c);
  EXPECT_EQ(run_folder_of(dir_.path("elsewhere")), run_) << "the config of its checkpoint says so";
}

}  // namespace
}  // namespace hlat::test
