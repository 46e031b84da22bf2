// The files of a checkpoint: what is written is read back wherever its pieces lie, folders without an index do not exist, and what was
// changed is told.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <fstream>
#include <numeric>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/checksum.h"
#include "checkpoint/piece_file.h"
#include "checkpoint/safetensors.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;

CheckpointIndex small_index() {
  CheckpointIndex index;
  index.run = "0123456789abcdef";
  index.hlat = "0.1.0";
  index.created = "2026-11-16T00:00:00Z";
  index.step = 7;
  index.tokens = 7168;
  index.loss = 2.5;
  index.config = R"({"model":{"layers":2}})";
  index.records = {{"train", 1, R"({"step":7})"}};
  index.tensors = {{"a", StateKind::weight, DType::f32, {6, 10}}, {"a", StateKind::moment1, DType::bf16, {6, 10}}};
  return index;
}

// Element i of tensor t has the value 100 t + i; bf16 as its upper bits.
void content(int32_t tensor, DType type, int64_t i, std::byte* to) {
  const float value = static_cast<float>(100 * tensor + i);
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  const auto upper = static_cast<uint16_t>(bits >> 16);
  std::memcpy(to, type == DType::f32 ? static_cast<const void*>(&value) : &upper, size_of(type));
}

std::vector<std::byte> elements(int32_t tensor, DType type, const ElementMap& map, int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size_of(type));
  for (int64_t e = 0; e < count; ++e) content(tensor, type, map.global(e), bytes.data() + static_cast<size_t>(e) * size_of(type));
  return bytes;
}

// Two files: columns 0 to 3 and 4 to 9 of both tensors, the first in two flat ranges, as a tensor-parallel rank's shards are.
// second: the first column of the second file; any but 4 is wrong.
fs::path write_small(const fs::path& parent, int64_t second = 4) {
  CheckpointIndex index = small_index();
  NewCheckpoint checkpoint(parent, index.step);
  const std::vector<ElementMap> columns = {{.first = 0, .run = 4, .stride = 10}, {.first = second, .run = 6, .stride = 10}};
  for (size_t f = 0; f < columns.size(); ++f) {
    std::vector<Piece> pieces;
    std::vector<std::byte> bytes;
    for (int32_t t = 0; t < 2; ++t) {
      const int64_t count = 6 * columns[f].run, half = f == 0 ? 9 : count;
      ElementMap rest = columns[f];
      rest.offset = half;
      const SavedTensor& of = index.tensors[static_cast<size_t>(t)];
      add_pieces(pieces, t, of, columns[f], half);
      add_pieces(pieces, t, of, rest, count - half);
      const auto all = elements(t, of.dtype, columns[f], count);
      bytes.insert(bytes.end(), all.begin(), all.end());
    }
    PieceFile file(NewCheckpoint::folder_of(parent, index.step) / fmt::format("rank_{:05}.safetensors", f), index.tensors, pieces,
                   index.run, index.step);
    EXPECT_EQ(file.bytes(), bytes.size());
    for (size_t done = 0; done < bytes.size(); done += 7) file.write(bytes.data() + done, std::min<size_t>(7, bytes.size() - done));
    index.files.push_back(file.finish());
  }
  checkpoint.commit(index);
  return checkpoint_path(parent, index.step);
}

TEST(CheckpointFiles, AnyElementsAreReadWhateverThePieces) {
  const test::TempDir dir;
  CheckpointReader reader(write_small(dir.path("c")));
  for (int32_t t = 0; t < 2; ++t) {
    const DType type = reader.index().tensors[static_cast<size_t>(t)].dtype;
    for (int64_t first = 0; first < 60; ++first)
      for (const int64_t count : {int64_t{1}, int64_t{7}, int64_t{23}, 60 - first}) {
        if (first + count > 60) continue;
        std::vector<std::byte> got(static_cast<size_t>(count) * size_of(type));
        reader.read(t, first, count, got.data());
        EXPECT_EQ(got, elements(t, type, {.first = first}, count)) << t << " " << first << " " << count;
      }
    const ElementMap columns{.first = 3, .run = 4, .stride = 10, .offset = 2};
    std::vector<std::byte> got(15 * size_of(type));
    reader.read(t, columns, 1, 16, got.data());
    ElementMap from = columns;
    from.offset = 3;
    EXPECT_EQ(got, elements(t, type, from, 15));
  }
}

TEST(CheckpointFiles, TheIndexSaysWhatWasSaved) {
  const test::TempDir dir;
  const CheckpointIndex index = read_index(write_small(dir.path("c"))), wanted = small_index();
  EXPECT_EQ(index.run, wanted.run);
  EXPECT_EQ(index.step, 7);
  EXPECT_EQ(index.tokens, 7168);
  EXPECT_EQ(index.loss, 2.5);
  EXPECT_EQ(index.config, wanted.config);
  EXPECT_EQ(index.records, wanted.records);
  EXPECT_EQ(index.tensors, wanted.tensors);
  EXPECT_EQ(index.find(StateKind::moment1, "a"), 1);
  EXPECT_EQ(index.find(StateKind::master, "a"), std::nullopt);
  EXPECT_EQ(CheckpointIndex::parse(index.save()).save(), index.save());
  uint64_t on_disk = 0;
  for (const SavedFile& f : index.files) on_disk += fs::file_size(dir.path("c") + "/step_7/" + f.name);
  EXPECT_EQ(index.bytes(), on_disk);
}

TEST(CheckpointFiles, AreSafetensors) {
  const test::TempDir dir;
  const fs::path folder = write_small(dir.path("c"));
  const SafetensorsHeader header = SafetensorsHeader::read(folder / "rank_00000.safetensors");
  EXPECT_EQ(header.metadata.at("step"), "7");
  ASSERT_EQ(header.tensors.size(), 4u);
  EXPECT_EQ(header.tensors[1].name, "weight:a:21");  // element 9 of the columns: row 2, column 1
  EXPECT_EQ(header.tensors[1].shape, std::vector<int64_t>{15});
  EXPECT_EQ(header.tensors[2].dtype, "BF16");
  EXPECT_EQ(header.bytes % 4096, 0u);
}

TEST(CheckpointFiles, ACheckpointOfOneTensorInManyFiles) {
  const test::TempDir dir;
  CheckpointIndex index = small_index();
  index.content = CheckpointContent::weights;
  index.tensors = {{"big", StateKind::weight, DType::f32, {3, 1 << 20}}};
  const auto fill = [](int32_t, int64_t first, int64_t count, void* to) {
    std::iota(static_cast<float*>(to), static_cast<float*>(to) + count, static_cast<float>(first));
  };
  const fs::path folder = write_checkpoint(dir.path("w"), index, fill, 8 << 20);
  CheckpointReader reader(folder, size_t{5} << 20);
  EXPECT_EQ(reader.index().files.size(), 2u);
  std::vector<float> got(3 << 20), wanted(3 << 20);
  std::iota(wanted.begin(), wanted.end(), 0.0f);
  reader.read(0, 0, 3 << 20, got.data());
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(reader.bytes_read(), uint64_t{12} << 20);
}

TEST(CheckpointFiles, FewOfManyAreOpenAtATime) {
  const test::TempDir dir;
  CheckpointIndex index = small_index();
  index.tensors.clear();
  for (int t = 0; t < 200; ++t) index.tensors.push_back({fmt::format("t{}", t), StateKind::weight, DType::f32, {4}});
  const auto fill = [](int32_t tensor, int64_t, int64_t count, void* to) {
    std::fill_n(static_cast<float*>(to), count, static_cast<float>(tensor));
  };
  const fs::path folder = write_checkpoint(dir.path("w"), index, fill, 1);
  CheckpointReader reader(folder, 1);
  ASSERT_EQ(reader.index().files.size(), 200u);
  for (int round = 0; round < 2; ++round)
    for (int32_t t = 0; t < 200; ++t) {
      std::vector<float> got(4);
      reader.read(t, 0, 4, got.data());
      EXPECT_EQ(got, std::vector<float>(4, static_cast<float>(t)));
    }
  int open = 0;
  std::error_code closed;
  for (const auto& fd : fs::directory_iterator("/proc/self/fd")) open += fs::read_symlink(fd.path(), closed).parent_path() == folder;
  EXPECT_GT(open, 0);
  EXPECT_LE(open, 64);
}

TEST(CheckpointFiles, ChangedCutMissingAndMixedUpFilesAreNamed) {
  const test::TempDir dir;
  const fs::path folder = write_small(dir.path("c")), file = folder / "rank_00001.safetensors";
  const auto problem = [&] {
    return message_of([&] {
      CheckpointReader reader(folder);
      reader.verify([](uint64_t) {});
    });
  };
  const auto flip = [&](const fs::path& path, int64_t at) {
    std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(at);
    const int c = f.get();
    f.seekp(at);
    f.put(static_cast<char>(c ^ 1));
  };
  flip(file, 4096 + 36 * 4 + 3);
  EXPECT_NE(problem().find("rank_00001.safetensors: piece 1 (moment1:a:4) is not what was saved"), std::string::npos) << problem();
  flip(file, 4096 + 36 * 4 + 3);
  flip(file, 100);
  EXPECT_NE(problem().find("rank_00001.safetensors: its header"), std::string::npos);
  flip(file, 100);
  flip(folder / "index.json", 50);
  EXPECT_NE(problem().find("index.json: its checksum is wrong"), std::string::npos);
  flip(folder / "index.json", 50);
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_NE(problem().find("rank_00001.safetensors has 4311 bytes instead of 4312"), std::string::npos);
  fs::remove(file);
  EXPECT_NE(problem().find("rank_00001.safetensors is missing"), std::string::npos);
}

TEST(CheckpointFiles, AnIndexThatContradictsItselfIsRefused) {
  const test::TempDir dir;
  const CheckpointIndex sound = read_index(write_small(dir.path("c")));
  const auto problem = [&](const std::function<void(CheckpointIndex&)>& change) {
    CheckpointIndex index = sound;
    change(index);
    return message_of([&] { CheckpointIndex::parse(index.save()); });
  };
  EXPECT_NE(problem([](CheckpointIndex& i) { i.files[0].name = "../rank_00000.safetensors"; }).find("not named like"), std::string::npos);
  EXPECT_NE(problem([](CheckpointIndex& i) { i.files[1].name = i.files[0].name; }).find("twice"), std::string::npos);
  EXPECT_NE(problem([](CheckpointIndex& i) { i.files[0].pieces[0].tensor = 2; }).find("the tensor of piece 0"), std::string::npos);
  EXPECT_NE(problem([](CheckpointIndex& i) { i.files[0].pieces[0].map.first = 57; }).find("beyond its tensor"), std::string::npos);
  EXPECT_NE(problem([](CheckpointIndex& i) { i.files[0].pieces[0].map.offset = 40; }).find("beyond its tensor"), std::string::npos);
  EXPECT_NE(problem([](CheckpointIndex& i) { i.files[0].pieces.pop_back(); }).find("elements in its pieces"), std::string::npos);
  EXPECT_NE(problem([](CheckpointIndex& i) { i.tensors[1].kind = StateKind::weight; }).find("there twice"), std::string::npos);
  EXPECT_NE(problem([](CheckpointIndex& i) { i.tensors[0].shape = {6, 11}; }).find("in its shape"), std::string::npos);
}

TEST(CheckpointFiles, PiecesThatOverlapAreFoundWhenRead) {
  const test::TempDir dir;
  CheckpointReader reader(write_small(dir.path("c"), 3));  // as many elements as there should be, one column twice and one not at all
  std::vector<float> row(10);
  EXPECT_NE(message_of([&] { reader.read(0, 0, 10, row.data()); }).find("not in exactly one piece"), std::string::npos);
}

TEST(CheckpointFiles, AnIndexThatMovesAPieceIsNotThatOfTheFile) {
  const test::TempDir dir;
  const fs::path folder = write_small(dir.path("c"));
  CheckpointIndex index = read_index(folder);
  index.files[1].pieces[0].map.first = 3;
  CheckpointReader reader(folder, index);
  std::vector<float> row(10);
  EXPECT_NE(message_of([&] { reader.read(0, 0, 10, row.data()); }).find("rank_00001.safetensors"), std::string::npos);
}

TEST(CheckpointFolder, ACommitThatDiedBetweenItsRenamesKeepsTheOldOne) {
  const test::TempDir dir;
  const fs::path parent = dir.path("c"), folder = write_small(parent);
  fs::rename(folder, folder.string() + ".replaced");
  remove_leftovers(parent);
  EXPECT_EQ(checkpoint_steps(parent), std::vector<int64_t>{7});
  CheckpointReader(folder).verify([](uint64_t) {});
}

TEST(CheckpointFolder, OnlyWhatHasAnIndexExists) {
  const test::TempDir dir;
  const fs::path parent = dir.path("c");
  write_small(parent);
  const NewCheckpoint begun(parent, 9);
  fs::create_directories(parent / "step_8");
  fs::create_directories(parent / "step_07");
  EXPECT_EQ(checkpoint_steps(parent), std::vector<int64_t>{7});
  remove_leftovers(parent);
  EXPECT_FALSE(fs::exists(parent / "step_9.tmp") || fs::exists(parent / "step_8"));
  EXPECT_TRUE(fs::exists(parent / "step_07")) << "not one of ours";
  write_small(parent);  // the same step once more
  EXPECT_EQ(checkpoint_steps(parent), std::vector<int64_t>{7});
  remove_checkpoint(parent / "step_7");
  EXPECT_TRUE(checkpoint_steps(parent).empty());
  EXPECT_TRUE(checkpoint_steps(dir.path("nowhere")).empty());
}

// Paths of as many bytes as the system takes: the folder can be listed, and what it has not be looked at. For root too.
TEST(CheckpointFolder, AFolderThatCannotBeLookedAtIsNotTakenForNone) {
  const test::TempDir dir;
  constexpr size_t kLongest = 4095;
  fs::path parent = dir.path();
  const size_t length = kLongest - std::string("/step_7").size();
  while (parent.string().size() + 250 < length) parent /= std::string(200, 'd');
  parent /= std::string(length - parent.string().size() - 1, 'e');
  fs::create_directories(parent / "step_7");
  EXPECT_THROW(checkpoint_steps(parent), Error);
  EXPECT_THROW(leftovers(parent), Error);
  EXPECT_THROW(remove_leftovers(parent), Error);
  EXPECT_TRUE(fs::exists(parent / "step_7")) << "what it is is not known";

  fs::create_symlink("loop", dir.path("loop"));
  EXPECT_THROW(checkpoint_steps(dir.path("loop")), Error);
  dir.write("file", "");
  EXPECT_TRUE(checkpoint_steps(dir.path("file")).empty());
}

// A folder is opened for nothing but to bring its names to disk.
TEST(CheckpointFolder, TheNamesOfNewFoldersReachTheDisk) {
  const test::TempDir dir;
  const int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(inotify_add_watch(events, dir.path().c_str(), IN_CREATE | IN_OPEN), 0);
  const NewCheckpoint begun(dir.path("run/checkpoints"), 7);
  alignas(inotify_event) std::array<char, 4096> buffer{};
  const ssize_t bytes = read(events, buffer.data(), buffer.size());
  close(events);
  std::vector<uint32_t> seen;
  for (ssize_t at = 0; at < bytes;) {
    inotify_event event{};
    std::memcpy(&event, buffer.data() + at, sizeof event);
    if ((event.mask & IN_CREATE) != 0 || event.len == 0) seen.push_back(event.mask);
    at += static_cast<ssize_t>(sizeof event + event.len);
  }
  EXPECT_EQ(seen, (std::vector<uint32_t>{IN_CREATE | IN_ISDIR, IN_OPEN | IN_ISDIR}));
}

TEST(CheckpointFolder, RetentionKeepsTheLatestAndEveryMth) {
  EXPECT_EQ(beyond_retention({100, 200, 300, 400, 500}, 2, 0), (std::vector<int64_t>{100, 200, 300}));
  EXPECT_EQ(beyond_retention({500, 100, 300, 200, 400}, 2, 200), (std::vector<int64_t>{100, 300}));
  EXPECT_TRUE(beyond_retention({100, 200}, 3, 0).empty());
  EXPECT_EQ(beyond_retention({9, 17, 27, 38, 40}, 1, 16), (std::vector<int64_t>{9, 27})) << "saves that came late";
  EXPECT_EQ(beyond_retention({17, 38, 40, 50}, 1, 16), (std::vector<int64_t>{40}));
}

TEST(Checksum, IsXxh3) {
  EXPECT_EQ(checksum_text(checksum("")), "2d06800538d394c2");  // the published value of no bytes
  RunningChecksum parts;
  parts.add("ab", 2);
  parts.add("c", 1);
  EXPECT_EQ(parts.take(), checksum("abc"));
  parts.add("abc", 3);
  EXPECT_EQ(parts.take(), checksum("abc"));
  EXPECT_EQ(parse_checksum(checksum_text(0x12)), 0x12u);
  for (const char* text : {"", "12", "00000000000000zz", "000000000000001A", "00000000000000012"})
    EXPECT_FALSE(parse_checksum(text)) << text;
}

}  // namespace
}  // namespace hlat
