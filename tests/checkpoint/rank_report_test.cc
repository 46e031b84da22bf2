#include "checkpoint/rank_report.h"

#include <gtest/gtest.h>

#include "support/message_of.h"

namespace hlat {
namespace {

RankReport report_of(const std::string& file, int64_t first, int64_t count) {
  RankReport r;
  r.tensors = {{.name = "layers.10.x", .kind = StateKind::weight, .dtype = DType::f32, .shape = {10}},
               {.name = "layers.9.x", .kind = StateKind::moment1, .dtype = DType::bf16, .shape = {2, 5}}};
  r.file = SavedFile{.name = file, .header_bytes = 4096, .header_checksum = 7, .pieces = {}};
  r.file->pieces = {{.tensor = 0, .map = {.first = first}, .count = count, .checksum = 5, .offset = 4096},
                    {.tensor = 1, .map = {.first = first, .run = 1, .stride = 2, .offset = 0}, .count = count, .checksum = 6}};
  r.record = "[1]";
  return r;
}

TEST(RankReport, IsTheSameAfterTheJourneyAndRefusedWhenItIsCut) {
  const RankReport report = report_of("rank_00001.safetensors", 4, 6);
  const std::string text = report.pack();
  const RankReport back = RankReport::unpack(text);
  EXPECT_EQ(back.tensors, report.tensors);
  ASSERT_TRUE(back.file);
  EXPECT_EQ(back.file->name, report.file->name);
  EXPECT_EQ(back.file->header_bytes, 4096u);
  EXPECT_EQ(back.file->header_checksum, 7u);
  EXPECT_EQ(back.file->pieces, report.file->pieces);
  EXPECT_EQ(back.record, "[1]");
  for (size_t n = 0; n < text.size(); ++n) EXPECT_THROW(RankReport::unpack(std::string_view(text).substr(0, n)), FaultError) << n;
}

TEST(RankReport, TensorsOfAllRanksAreInTheOrderOfTheirNames) {
  std::vector<RankReport> reports = {report_of("a", 0, 4), report_of("b", 4, 6), {}};
  // The second rank numbers them the other way round.
  std::swap(reports[1].tensors[0], reports[1].tensors[1]);
  std::swap(reports[1].file->pieces[0].tensor, reports[1].file->pieces[1].tensor);
  CheckpointIndex index;
  add_files(index, reports);
  ASSERT_EQ(index.tensors.size(), 2u);
  EXPECT_EQ(index.tensors[0].name, "layers.9.x");
  EXPECT_EQ(index.tensors[1].name, "layers.10.x");
  ASSERT_EQ(index.files.size(), 2u) << "a rank without a file has none";
  for (const SavedFile& file : index.files) {
    EXPECT_EQ(file.pieces[0].tensor, 1);
    EXPECT_EQ(file.pieces[1].tensor, 0);
  }
}

TEST(RankReport, NoIndexWithoutAllElementsOrWhenRanksContradictEachOther) {
  std::vector<RankReport> missing = {report_of("a", 0, 4), report_of("b", 4, 5)};
  CheckpointIndex index;
  EXPECT_EQ(message_of([&] { add_files(index, missing); }), "9 of the 10 elements of layers.9.x moment1 were written");
  std::vector<RankReport> contradicting = {report_of("a", 0, 4), report_of("b", 4, 6)};
  contradicting[1].tensors[0].shape = {11};
  CheckpointIndex other;
  EXPECT_EQ(message_of([&] { add_files(other, contradicting); }), "ranks have layers.10.x weight in different shapes or types");
}

}  // namespace
}  // namespace hlat
