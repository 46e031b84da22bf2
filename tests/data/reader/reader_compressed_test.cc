// .jsonl.gz and .jsonl.zst: the same documents as plain files, joined members and frames, broken data, and real corpora.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/error.h"
#include "data/reader/blocks.h"
#include "data/reader/document_file.h"
#include "data/reader/match_files.h"
#include "support/documents.h"
#include "support/message_of.h"
#include "support/paths.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using Texts = std::vector<std::string>;

struct Compression {
  std::string suffix;
  std::string (*pack)(std::string_view);
};
const Compression kGzip{".jsonl.gz", test::gzip};
const Compression kZstd{".jsonl.zst", test::zstd};

void PrintTo(const Compression& c, std::ostream* os) { *os << c.suffix; }

class ReaderCompressed : public testing::TestWithParam<Compression> {
 protected:
  std::string pack(std::string_view data) const { return GetParam().pack(data); }
  std::unique_ptr<DocumentFile> open(const std::string& data, ReaderOptions options = {}) const {
    const std::string path = dir_.write("a" + GetParam().suffix, data);
    return open_documents(path, options);
  }
  TempDir dir_;
};
INSTANTIATE_TEST_SUITE_P(Formats, ReaderCompressed, testing::Values(kGzip, kZstd),
                         [](const auto& format) { return format.param.suffix == ".jsonl.gz" ? "gz" : "zst"; });

// Small and large texts, some many blocks long.
Texts mixed_texts() {
  Texts texts = test::some_documents(400);
  for (const size_t length :
       {reader::kBlockText - 1, reader::kBlockText, reader::kBlockText + 1, 3 * reader::kBlockText, size_t{6'000'000}}) {
    texts.emplace_back();
    while (texts.back().size() < length) texts.back() += "é" + std::to_string(texts.back().size());
    texts.back().resize(length, 'x');
    while (static_cast<unsigned char>(texts.back().back()) >= 0x80) texts.back().pop_back();
    texts.push_back("between");
  }
  return texts;
}

TEST_P(ReaderCompressed, EqualsThePlainFileForAnyThreadCount) {
  const Texts texts = mixed_texts();
  const std::string lines = test::json_lines(texts);
  const auto plain = open_documents(dir_.write("a.jsonl", lines), {});
  const std::string path = dir_.write("a" + GetParam().suffix, pack(lines));
  for (const int threads : {1, 3}) {
    const auto file = open_documents(path, {.cache_dir = dir_.path(std::to_string(threads)), .threads = threads});
    ASSERT_EQ(file->documents(), texts.size());
    EXPECT_TRUE(test::read_all(*file) == texts);
    EXPECT_EQ(test::all_hashes(*file), test::all_hashes(*plain));
    EXPECT_EQ(file->fingerprint(), plain->fingerprint());
    EXPECT_EQ(file->report().bytes, plain->report().bytes);
  }
  const auto only_file = [&](const char* n) { return fs::directory_iterator(dir_.path(n))->path().string(); };
  EXPECT_TRUE(test::slurp(only_file("1")) == test::slurp(only_file("3")));
}

TEST_P(ReaderCompressed, PartsAndThreadsGiveTheSameTexts) {
  const Texts texts = mixed_texts();
  const auto file = open(pack(test::json_lines(texts)));
  EXPECT_TRUE(test::read_all_in_parts(*file, 50'000) == texts);
  std::vector<int> wrong(4, 0);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&, t] {
        std::string text;
        for (size_t i = 0; i < 500; ++i) {
          const size_t d = (i * 7919 + t * 31) % texts.size();
          file->text(d, text);
          wrong[t] += text != texts[d];
        }
      });
    }
  }
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_P(ReaderCompressed, JoinedMembersAreOneFile) {
  const std::string a = test::json_lines({"one", "two"});
  const std::string b = test::json_lines({"three"});
  EXPECT_EQ(test::read_all(*open(pack(a) + pack("") + pack(b))), (Texts{"one", "two", "three"}));
  EXPECT_EQ(test::read_all(*open(pack(a.substr(0, 20)) + pack(a.substr(20) + b))), (Texts{"one", "two", "three"}));  // cut in a line
}

TEST_P(ReaderCompressed, LinesAreNumberedAcrossBatches) {
  std::string lines = test::json_lines(Texts(200'000, "some text of a line"));  // more than one batch
  const uint64_t good = 200'000;
  lines += "{bad\n\n{\"text\": \"last\"}";
  const auto file = open(pack(lines));
  EXPECT_EQ(file->documents(), good + 1);
  ASSERT_EQ(file->report().examples.size(), 1u);
  EXPECT_EQ(file->report().examples[0].line, good + 1);
}

TEST_P(ReaderCompressed, WhatComesBeforeABreakIsKept) {
  const Texts texts = test::some_documents(300);
  const std::string whole = pack(test::json_lines(texts));
  for (const size_t size : {whole.size() / 2, whole.size() - 1, whole.size() * 9 / 10}) {
    const std::string message = message_of([&] { open(whole.substr(0, size)); });
    EXPECT_NE(message.find("the file is broken"), std::string::npos) << message;
    EXPECT_NE(message.find("data.allow_broken=true"), std::string::npos) << message;
    const auto file = open(whole.substr(0, size), {.allow_broken = true});
    EXPECT_EQ(file->report().bad, 0u);
    ASSERT_TRUE(file->report().broken);
    EXPECT_GE(file->report().broken->line, file->documents());
    EXPECT_NE(file->report().broken->reason.find("early"), std::string::npos) << file->report().broken->reason;
    const Texts found = test::read_all(*file);
    ASSERT_LE(found.size(), texts.size());
    EXPECT_TRUE(std::equal(found.begin(), found.end(), texts.begin()));
    EXPECT_GT(found.size(), texts.size() / 4);
  }
  EXPECT_THROW(open(whole.substr(0, whole.size() / 2)), UsageError);
}

TEST_P(ReaderCompressed, DamageIsABreak) {
  const Texts texts = test::some_documents(300);
  std::string data = pack(test::json_lines(texts));
  for (size_t i = 0; i < 40; ++i) data[data.size() / 2 + i] = static_cast<char>(data[data.size() / 2 + i] ^ 0x5a);
  const auto file = open(data, {.bad_share = 1.0, .allow_broken = true});
  ASSERT_TRUE(file->report().broken);
  EXPECT_NE(file->report().broken->reason.find("%) are lost"), std::string::npos) << file->report().broken->reason;
  EXPECT_LT(file->documents(), texts.size());
  const auto none = open("this is not compressed at all\n", {.allow_broken = true});
  EXPECT_EQ(none->documents(), 0u);
  EXPECT_TRUE(none->report().broken);
  const auto garbage = open(pack(test::json_lines({"one"})) + "garbage", {.allow_broken = true});
  EXPECT_EQ(test::read_all(*garbage), Texts{"one"});
  EXPECT_TRUE(garbage->report().broken);
}

TEST_P(ReaderCompressed, EmptyFilesAreReported) {
  for (const std::string& data : {std::string(), pack(""), pack("\n")}) {
    const auto file = open(data);
    EXPECT_EQ(file->documents(), 0u);
    EXPECT_EQ(file->report().bad, 1u);
    EXPECT_EQ(file->report().examples.at(0).reason, "no documents: the file is empty");
  }
}

TEST_P(ReaderCompressed, AReplacedFileIsNamed) {
  const auto file = open(pack(test::json_lines({"one"})));
  const std::string path = dir_.path("a" + GetParam().suffix);
  dir_.write("a" + GetParam().suffix, pack(test::json_lines({"other"})));
  const std::string message = message_of([&] {
    std::string text;
    for (int i = 0; i < 5000; ++i) file->text(0, text);
  });
  EXPECT_EQ(message, path + " was changed or replaced while it was in use");
}

// Documents in the first shard of each corpus as its list of sources says, and in all of them as lines were counted.
TEST(ReaderCorpora, HeavyHaveTheDocumentsTheirListSays) {
  const std::string corpora = test::source_path("../shared/data/corpora/");
  if (!fs::exists(corpora)) GTEST_SKIP() << "no shared data";
  const TempDir dir;
  struct Case {
    const char* pattern;
    uint64_t documents;
  };
  for (const Case& c : {Case{"books/books_train_00.*", 29}, Case{"docs/docs_train_00.*", 1569}, Case{"news/news_train_00.*", 5630},
                        Case{"wiki/wiki_train_00.*", 961}, Case{"books/*.zst", 111}, Case{"docs/*.zst", 6786}, Case{"news/*.zst", 5681},
                        Case{"wiki/*.zst", 6784}}) {
    uint64_t documents = 0;
    for (const std::string& path : match_files(corpora + c.pattern)) {
      const auto file = open_documents(path, {.cache_dir = dir.path(), .threads = 2});
      EXPECT_EQ(file->report().bad, 0u);
      documents += file->documents();
      std::string text;
      for (uint64_t d = 0; d < file->documents(); d += 37) {
        file->text(d, text);
        EXPECT_EQ(text.size(), file->length(d));
      }
    }
    EXPECT_EQ(documents, c.documents) << c.pattern;
  }
}

}  // namespace
}  // namespace hlat
