// hlat ckpt verify names every file and piece that is not what was saved.
#include "checkpoint/verify.h"

#include <gtest/gtest.h>

#include "checkpoint/checkpoint_folder.h"
#include "support/small_checkpoint.h"
#include "support/temp_dir.h"

namespace hlat::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> damage(const fs::path& folder, int threads = 2) {
  CheckpointReader reader(folder);
  return find_damage(reader, threads);
}

TEST(VerifyCheckpoint, SaysNothingOfAWholeOne) {
  const TempDir dir;
  const auto folder = write_in_columns(dir.path(), small_model(1), 2);
  CheckpointReader reader(folder);
  uint64_t bytes = 0;
  EXPECT_TRUE(find_damage(reader, 1, [&](uint64_t n) { bytes += n; }).empty());
  EXPECT_EQ(bytes, reader.bytes_read());
  EXPECT_GT(bytes, 0u);
}

TEST(VerifyCheckpoint, NamesAllDamagedPieces) {
  const TempDir dir;
  const auto folder = write_in_columns(dir.path(), small_model(1), 4);
  const CheckpointIndex index = read_index(folder);
  const auto flip = [&](size_t file, size_t piece) {
    flip_byte(folder / index.files[file].name, static_cast<int64_t>(index.files[file].pieces[piece].offset));
  };
  flip(0, 1);
  flip(0, 4);
  flip(2, 0);
  const std::vector<std::string> problems = damage(folder);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_NE(problems[0].find("rank_0.safetensors: piece 1 (" + piece_name(index.files[0].pieces[1], index.tensors) + ")"),
            std::string::npos)
      << problems[0];
  EXPECT_NE(problems[1].find("rank_0.safetensors: piece 4"), std::string::npos) << problems[1];
  EXPECT_NE(problems[2].find("rank_2.safetensors: piece 0"), std::string::npos) << problems[2];
}

TEST(VerifyCheckpoint, NamesAFileThatIsMissingOrCutOnce) {
  const TempDir dir;
  const auto folder = write_in_columns(dir.path(), small_model(1), 4);
  fs::remove(folder / "rank_0.safetensors");
  fs::resize_file(folder / "rank_1.safetensors", fs::file_size(folder / "rank_1.safetensors") - 1);
  flip_byte(folder / "rank_2.safetensors", 20);  // in the header
  const std::vector<std::string> problems = damage(folder);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_NE(problems[0].find("rank_0.safetensors is missing"), std::string::npos) << problems[0];
  EXPECT_NE(problems[1].find("rank_1.safetensors has "), std::string::npos) << problems[1];
  EXPECT_NE(problems[2].find("rank_2.safetensors: its header"), std::string::npos) << problems[2];
}

TEST(VerifyCheckpoint, FindsElementsThatTwoPiecesHave) {
  const TempDir dir;
  const auto folder = write_in_columns(dir.path(), small_model(1), 2);
  CheckpointIndex index = read_index(folder);
  index.files[1].pieces[0].map.first = 0;  // the columns of the other rank
  const std::string name = index.tensors[static_cast<size_t>(index.files[1].pieces[0].tensor)].name;
  CheckpointReader reader(folder, index);
  const std::vector<std::string> problems = find_damage(reader, 1);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("rank_1.safetensors"), std::string::npos) << "its header has them elsewhere: " << problems[0];
  EXPECT_NE(problems[1].find("element 0 of weight " + name + " is not in exactly one piece"), std::string::npos) << problems[1];
}

}  // namespace
}  // namespace hlat::test
