// Reading whole checkpoints in bounded memory: the cache holds the pieces that lie side by side, and each is read once.
#include "checkpoint/scan_cache.h"

#include <gtest/gtest.h>

#include <atomic>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/for_all.h"
#include "support/small_checkpoint.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

constexpr int64_t kScanRows = 2048, kScanColumns = 2048;  // of f32: 16 MiB, 8 ranks have pieces of 2 MiB

std::filesystem::path of_8_ranks(const std::string& dir) {
  SmallCheckpoint c;
  c.tensors = {{"w", {kScanRows, kScanColumns}, std::vector<float>(kScanRows * kScanColumns, 1.5f)}};
  return write_in_columns(dir, c, 8);
}

uint64_t read_by_rows(CheckpointReader& reader) {
  std::vector<float> rows(static_cast<size_t>(64 * kScanColumns));
  for (int64_t row = 0; row < kScanRows; row += 64) reader.read(0, row * kScanColumns, 64 * kScanColumns, rows.data());
  return reader.bytes_read();
}

TEST(ScanCache, PiecesOfTensorParallelRanksAreReadOnce) {
  const TempDir dir;
  const std::filesystem::path folder = of_8_ranks(dir.path());
  const CheckpointIndex index = read_index(folder);
  EXPECT_EQ(scan_cache_bytes(index), (size_t{2} * 16 + 4 * 4) << 20) << "twice what is side by side, and a piece for each thread";
  EXPECT_EQ(read_by_rows(*open_for_scan(folder)), uint64_t{kScanRows} * kScanColumns * 4);
  CheckpointReader small(folder, size_t{8} << 20);
  EXPECT_GT(read_by_rows(small), uint64_t{kScanRows} * kScanColumns * 4 * 4) << "with less they are read again and again";
}

TEST(ScanCache, StaysWithinItsLimit) {
  CheckpointIndex index;
  index.tensors = {{"w", StateKind::weight, DType::f32, {1 << 20, 1 << 10}}};
  index.files.resize(1);
  for (int64_t rank = 0; rank < 128; ++rank)  // 4 MiB each
    index.files[0].pieces.push_back({.tensor = 0, .map = {.first = rank * 8, .run = 8, .stride = 1024}, .count = 1 << 20});
  EXPECT_EQ(scan_cache_bytes(index), kMostScanCache);
}

TEST(ForAll, DoesEachItemOnceAndCarriesAFailure) {
  std::vector<std::atomic<int>> done(1000);
  for_all(done.size(), 3, [&](size_t i) { ++done[i]; });
  for (const auto& n : done) EXPECT_EQ(n, 1);
  std::atomic<int> count = 0;
  EXPECT_THROW(for_all(1000000, 3,
                       [&](size_t i) {
                         ++count;
                         if (i == 10) throw FaultError("disk");
                       }),
               FaultError);
  EXPECT_LT(count, 1000000) << "the rest is not begun";
  for_all(0, 3, [&](size_t) { FAIL(); });
}

}  // namespace
}  // namespace hlat::test
