// Arrow and Parquet files: the same documents as .jsonl, in every way a table can be stored, and tables that are broken.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "data/reader/document_file.h"
#include "data/reader/index.h"
#include "support/arrow_files.h"
#include "support/documents.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;
using test::TableKind;
using test::TempDir;
using Texts = std::vector<std::string>;

std::string name_of(const TableKind& kind) { return kind.format == "parquet" ? "a.parquet" : "a.arrow"; }

TEST(ReaderTables, ABuildWithoutArrowSaysSo) {
  if (test::have_arrow()) GTEST_SKIP() << "this build has Arrow";
  const TempDir dir;
  for (const char* name : {"a.arrow", "a.parquet"}) {
    const std::string path = dir.write(name, "x");
    EXPECT_NE(message_of([&] { open_documents(path, {}); }).find("this build has no Arrow"), std::string::npos);
  }
}

class ReaderTable : public testing::TestWithParam<TableKind> {
 protected:
  void SetUp() override {
    if (!test::have_arrow()) GTEST_SKIP() << "this build has no Arrow";
  }
  std::string write(const std::string& data) const { return dir_.write(name_of(GetParam()), data); }
  TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(Formats, ReaderTable,
                         testing::Values(TableKind{"file", ""}, TableKind{"stream", ""}, TableKind{"file", "lz4"},
                                         TableKind{"stream", "zstd"}, TableKind{"file", "", "large_utf8"},
                                         TableKind{"stream", "", "binary", 7}, TableKind{"file", "", "utf8_view"},
                                         TableKind{"file", "", "dictionary"}, TableKind{"stream", "zstd", "dictionary"},
                                         TableKind{"parquet", ""}, TableKind{"parquet", "snappy"},
                                         TableKind{"parquet", "zstd", "large_utf8"}, TableKind{"parquet", "gzip", "binary", 1000},
                                         TableKind{"parquet", "", "dictionary"}, TableKind{"file", "", "utf8", 100'000}),
                         [](const auto& kind) {
                           return kind.param.format + "_" + kind.param.codec + "_" + kind.param.type + "_" +
                                  std::to_string(kind.param.rows);
                         });

TEST_P(ReaderTable, EqualsTheJsonLines) {
  const Texts texts = test::some_documents(300);
  const std::string path = write(test::make_table(texts, GetParam()));
  const auto plain = open_documents(dir_.write("a.jsonl", test::json_lines(texts)), {});
  for (const int threads : {1, 3}) {
    const auto file = open_documents(path, {.cache_dir = dir_.path(std::to_string(threads)), .threads = threads});
    ASSERT_EQ(file->documents(), texts.size());
    EXPECT_TRUE(test::read_all(*file) == texts);
    EXPECT_TRUE(test::read_all_in_parts(*file, 20'000) == texts);
    EXPECT_EQ(test::all_hashes(*file), test::all_hashes(*plain));
    EXPECT_EQ(file->fingerprint(), plain->fingerprint());
    EXPECT_EQ(file->report().bad, 0u);
  }
  const auto only_file = [&](const char* n) { return fs::directory_iterator(dir_.path(n))->path().string(); };
  EXPECT_TRUE(test::slurp(only_file("1")) == test::slurp(only_file("3")));
  // Where the texts stand in the file as they are, they are not copied.
  const bool in_place =
      GetParam().codec.empty() && GetParam().format != "parquet" && GetParam().type != "dictionary" && GetParam().type != "utf8_view";
  EXPECT_EQ(fs::file_size(only_file("1")) == sizeof(reader::IndexHeader) + 24 * texts.size(), in_place);
}

TEST_P(ReaderTable, NullAndBrokenTextIsBadWithItsRow) {
  std::vector<std::optional<std::string>> texts(300, "good");
  texts[4] = std::nullopt;
  texts[205] = "\xff\xfe";
  texts[206] = "";
  const auto file = open_documents(write(test::make_table(texts, GetParam())), {.allow_broken = true});
  if (GetParam().format == "parquet" && GetParam().type == "dictionary") {  // Arrow refuses such a column as a whole
    EXPECT_EQ(file->documents(), 0u);
    ASSERT_TRUE(file->report().broken);
    EXPECT_NE(file->report().broken->reason.find("UTF8"), std::string::npos) << file->report().broken->reason;
    return;
  }
  EXPECT_EQ(file->documents(), 298u);
  ASSERT_EQ(file->report().examples.size(), 2u);
  EXPECT_EQ(file->report().examples[0].line, 5u);
  EXPECT_EQ(file->report().examples[0].reason, "null, not a text");
  EXPECT_EQ(file->report().examples[1].line, 206u);
  EXPECT_EQ(file->report().examples[1].reason, "invalid UTF-8");
  std::string text;
  file->text(204, text);
  EXPECT_EQ(text, "");
}

TEST_P(ReaderTable, NamesColumnsThatAreNotThereOrNotText) {
  const std::string path = write(test::make_table(Texts{"one"}, GetParam()));
  EXPECT_EQ(message_of([&] { open_documents(path, {.field = "body"}); }), path + ": no column \"body\"; it has id, text, other");
  EXPECT_EQ(message_of([&] { open_documents(path, {.field = "id"}); }), path + ": column \"id\" is int64, not text");
}

TEST_P(ReaderTable, ABrokenFileIsReported) {
  const std::string whole = test::make_table(test::some_documents(300), GetParam());
  for (const size_t size : {size_t{3}, whole.size() / 2, whole.size() - 20}) {
    EXPECT_THROW(open_documents(write(whole.substr(0, size)), {}), UsageError) << size;
    const auto file = open_documents(write(whole.substr(0, size)), {.allow_broken = true});
    EXPECT_TRUE(file->report().broken) << size;
    if (GetParam().format == "stream" && GetParam().type != "dictionary" && size > 3) {
      EXPECT_GT(file->documents(), 0u);
    }
    test::read_all(*file);
  }
  const auto empty = open_documents(write(""), {});
  EXPECT_EQ(empty->report().examples.at(0).reason, "no documents: the file is empty");
  const auto rows = open_documents(write(test::make_table(Texts{}, GetParam())), {});
  EXPECT_EQ(rows->report().examples.at(0).reason, "no documents: the file is empty");
}

}  // namespace
}  // namespace hlat
