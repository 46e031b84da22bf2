// hlat ckpt inspect: statistics of each tensor, whatever its pieces and the number of threads.
#include "checkpoint/tensor_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/small_checkpoint.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

TEST(TensorStatistics, AreThoseOfTheFiniteElements) {
  const TempDir dir;
  SmallCheckpoint c;
  const float inf = std::numeric_limits<float>::infinity();
  c.tensors = {{"a", {2, 4}, {0, 3, -1, inf, -0.0f, NAN, 2, 0}}, {"b", {2}, {NAN, inf}}};
  CheckpointReader reader(write_small(dir.path(), c));
  uint64_t bytes = 0;
  const auto stats = tensor_stats(reader, {true, true}, 1, [&](uint64_t n) { bytes += n; });
  EXPECT_EQ(bytes, 40u);
  ASSERT_TRUE(stats[0] && stats[1]);
  EXPECT_EQ(stats[0]->elements, 8);
  EXPECT_EQ(stats[0]->zeros, 3);
  EXPECT_EQ(stats[0]->not_finite, 2);
  EXPECT_EQ(stats[0]->min, -1);
  EXPECT_EQ(stats[0]->max, 3);
  EXPECT_DOUBLE_EQ(stats[0]->mean, 4.0 / 6);
  EXPECT_DOUBLE_EQ(stats[0]->rms, std::sqrt(14.0 / 6));
  EXPECT_DOUBLE_EQ(stats[0]->deviation, std::sqrt(14.0 / 6 - 16.0 / 36));
  EXPECT_EQ(stats[1]->not_finite, 2);
  EXPECT_EQ(stats[1]->max, 0) << "there is no finite element";
}

TEST(TensorStatistics, AreTheSameForPiecesOfManyRanksAndFromManyThreads) {
  const TempDir dir;
  const SmallCheckpoint c = small_model(1);
  CheckpointReader whole(write_small(dir.path("a"), c)), columns(write_in_columns(dir.path("b"), c, 4));
  const std::vector<bool> all(c.tensors.size(), true);
  const auto a = tensor_stats(whole, all, 1), b = tensor_stats(columns, all, 1), threaded = tensor_stats(columns, all, 3);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(a[i]->elements, b[i]->elements);
    EXPECT_EQ(a[i]->min, b[i]->min);
    EXPECT_EQ(a[i]->max, b[i]->max);
    EXPECT_NEAR(a[i]->mean, b[i]->mean, 1e-12);
    EXPECT_NEAR(a[i]->rms, b[i]->rms, 1e-12);
    EXPECT_EQ(b[i]->mean, threaded[i]->mean) << "bit by bit";
    EXPECT_EQ(b[i]->rms, threaded[i]->rms);
  }
}

TEST(TensorStatistics, ReadWhatIsWantedAndVerifyIt) {
  const TempDir dir;
  const SmallCheckpoint c = small_model(1);
  const auto folder = write_small(dir.path(), c);
  flip_byte(folder / "part_00000.safetensors", -1);  // in the last tensor
  std::vector<bool> wanted(c.tensors.size(), false);
  wanted.front() = true;
  CheckpointReader reader(folder);
  const auto stats = tensor_stats(reader, wanted, 2);
  EXPECT_TRUE(stats.front());
  EXPECT_FALSE(stats.back());
  EXPECT_EQ(reader.bytes_read(), 16u * 8 * 2);
  wanted.back() = true;
  EXPECT_THROW(tensor_stats(reader, wanted, 2), DamagedCheckpoint);
}

}  // namespace
}  // namespace hlat::test
