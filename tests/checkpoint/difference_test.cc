// hlat ckpt diff: largest and mean difference of each tensor, whatever the layouts and types.
#include "checkpoint/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "support/small_checkpoint.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

CheckpointDifference diff(const std::filesystem::path& a, const std::filesystem::path& b, DiffWhat what = DiffWhat::all, int threads = 2) {
  CheckpointReader left(a), right(b);
  uint64_t bytes = 0;
  std::mutex mutex;
  CheckpointDifference d = compare_checkpoints(left, right, what, threads, [&](uint64_t n) {
    const std::lock_guard lock(mutex);
    bytes += n;
  });
  EXPECT_EQ(bytes, diff_bytes(left.index(), right.index(), what));
  return d;
}

TEST(CheckpointDiff, OfTheSameElementsInOtherLayoutsIsNothing) {
  const TempDir dir;
  const SmallCheckpoint c = small_model(1);
  const CheckpointDifference d = diff(write_in_columns(dir.path("a"), c, 4), write_small(dir.path("b"), c));
  EXPECT_TRUE(d.identical_tensors());
  EXPECT_EQ(d.tensors.size(), c.tensors.size());
  EXPECT_TRUE(d.config.empty());
  EXPECT_TRUE(d.records.empty());
}

TEST(CheckpointDiff, LargestAndMeanOfOneTensor) {
  const TempDir dir;
  SmallCheckpoint a = small_model(1), b = a;
  std::vector<float>& x = a.tensor(StateKind::master, "head.output").values;
  x.assign(128, 2.0f);
  b.tensor(StateKind::master, "head.output").values = x;
  b.tensor(StateKind::master, "head.output").values[5] = 2.5f;
  b.tensor(StateKind::master, "head.output").values[77] = 1.0f;
  const CheckpointDifference d = diff(write_in_columns(dir.path("a"), a, 2), write_small(dir.path("b"), b));
  EXPECT_FALSE(d.identical_tensors());
  for (const TensorDifference& t : d.tensors) {
    const bool changed = t.a.name == "head.output" && t.a.kind == StateKind::master;
    EXPECT_EQ(t.identical(), !changed) << t.a.name;
    if (!changed) continue;
    EXPECT_EQ(t.differing, 2);
    EXPECT_EQ(t.largest, 1.0);
    EXPECT_EQ(t.largest_at, 77);
    EXPECT_DOUBLE_EQ(t.mean, 1.5 / 128);
    EXPECT_DOUBLE_EQ(t.rms, 2.0);
  }
}

TEST(CheckpointDiff, OtherTypesAreComparedByValue) {
  const TempDir dir;
  SmallCheckpoint a, b;
  a.tensors = {{"w", {4}, {1.0f, 1.00390625f, -2, 0}, StateKind::weight, DType::f32}};
  b.tensors = a.tensors;
  b.tensors[0].dtype = DType::bf16;  // 1 + 2^-8 becomes 1
  const TensorDifference t = diff(write_small(dir.path("a"), a), write_small(dir.path("b"), b)).tensors.at(0);
  EXPECT_EQ(t.differing, 1);
  EXPECT_EQ(t.largest, 0.00390625);
  EXPECT_EQ(t.largest_at, 1);
}

TEST(CheckpointDiff, NumbersThatAreNotFiniteAreCountedApart) {
  const TempDir dir;
  SmallCheckpoint a, b;
  a.tensors = {{"w", {4}, {NAN, NAN, 1, 0.0f}}};
  b.tensors = {{"w", {4}, {NAN, 3, 2, -0.0f}}};
  const TensorDifference t = diff(write_small(dir.path("a"), a), write_small(dir.path("b"), b)).tensors.at(0);
  EXPECT_EQ(t.differing, 3) << "the same NaN twice is no difference, another sign of 0 is one";
  EXPECT_EQ(t.not_comparable, 1);
  EXPECT_EQ(t.largest, 1);
  EXPECT_DOUBLE_EQ(t.mean, 1.0 / 3);
}

TEST(CheckpointDiff, TellsTensorsOfOneShapesKeysAndRecords) {
  const TempDir dir;
  SmallCheckpoint a = small_model(1), b = small_model(1, false);
  b.tensors.push_back({"extra", {3}, {1, 2, 3}});
  b.tensor(StateKind::weight, "embedding").shape = {8, 16};
  b.config = R"({"run":{"dir":"runs/a"},"model":{"layers":2,"heads":2,"rope_theta":500000.0,"tied":true},"train":{"precision":"mixed"}})";
  b.records = {{"progress", 2, R"({"step":10})"}, {"average", 1, "{}"}};
  const auto from = write_small(dir.path("a"), a), to = write_small(dir.path("b"), b);
  const CheckpointDifference d = diff(from, to);
  EXPECT_EQ(d.only_a.size(), 12u) << "masters and moments";
  ASSERT_EQ(d.only_b.size(), 1u);
  EXPECT_EQ(d.only_b[0].name, "extra");
  EXPECT_FALSE(d.tensors.at(0).identical()) << "another shape";
  EXPECT_EQ(d.config, (std::vector<ConfigDifference>{{"model.rope_theta", "10000.0", "500000.0"}, {"model.tied", "", "true"}}));
  EXPECT_EQ(d.records, (std::vector<std::string>{"progress", "average"}));
  EXPECT_TRUE(diff(from, to, DiffWhat::weights).only_a.empty());
}

}  // namespace
}  // namespace hlat::test
