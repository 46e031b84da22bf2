// The record of kernel choices in a checkpoint: every rank has its own again, and a broken record is a damaged checkpoint.
#include <gtest/gtest.h>

#include "ops/kernel_choices.h"
#include "support/message_of.h"
#include "train/state_records.h"

namespace hlat {
namespace {

std::string kernels(const std::string& kernel) { return kernel_choices_text({{"GPU", {{"library 1", {{"4x4x4", kernel}}}}}}); }

TEST(KernelRecords, EveryRankHasItsOwnAgain) {
  CheckpointIndex index;
  join_records(index,
               {own_record(DataState{}, kernels("a")), own_record({}, kernels("b")), own_record({}, ""), own_record({}, kernels("a"))});
  EXPECT_EQ(saved_kernels(index, 0), kernels("a"));
  EXPECT_EQ(saved_kernels(index, 1), kernels("b"));
  EXPECT_EQ(saved_kernels(index, 3), kernels("a"));
  EXPECT_EQ(saved_kernels(index, 100), kernels("a")) << "a larger layout";
}

TEST(KernelRecords, OldCheckpointsHaveNoneAndBrokenOnesAreDamaged) {
  CheckpointIndex index;
  EXPECT_EQ(saved_kernels(index, 0), "");
  index.step = 300;
  index.records = {{"kernels", 1, R"({"common": {"GPU": 7}, "differing": []})"}};
  EXPECT_THROW(saved_kernels(index, 0), DamagedCheckpoint);
  EXPECT_NE(message_of([&] { saved_kernels(index, 0); }).find("checkpoint of step 300"), std::string::npos);
  index.records = {{"kernels", 2, "{}"}};
  EXPECT_NE(message_of([&] { saved_kernels(index, 0); }).find("use a newer hlat"), std::string::npos);
}

}  // namespace
}  // namespace hlat
