// Files of other shapes than lines: JSON arrays and values, texts with separators, plain and compressed.
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/reader/document_file.h"
#include "support/documents.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using test::TempDir;
using Texts = std::vector<std::string>;

struct Packed {
  std::string suffix;
  std::string (*pack)(std::string_view);
};
const std::vector<Packed> kAll = {{"", [](std::string_view d) { return std::string(d); }}, {".gz", test::gzip}, {".zst", test::zstd}};

// The documents of a content under a name, the same for all ways to store it.
Texts texts_of(const std::string& name, const std::string& content, const ReaderOptions& options = {}) {
  const TempDir dir;
  Texts first;
  for (const Packed& p : kAll) {
    const auto file = open_documents(dir.write(name + p.suffix, p.pack(content)), options);
    EXPECT_EQ(file->report().bad, 0u) << describe_bad(file->report());
    const Texts texts = test::read_all(*file);
    EXPECT_TRUE(test::read_all_in_parts(*file, 7000) == texts);
    if (p.suffix.empty()) first = texts;
    EXPECT_TRUE(texts == first) << p.suffix;
  }
  return first;
}

FileReport records_report(const std::string& name, const std::string& content) {
  const TempDir dir;
  return open_documents(dir.write(name, content), {.bad_share = 1.0, .allow_broken = true})->report();
}

std::string array_of(const Texts& texts, bool objects) {
  std::string all = "[";
  for (const std::string& t : texts) {
    if (all.size() > 1) all += ",\n ";
    all += objects ? "{\"id\": [1, {\"x\": \"]}\"}],\n \"text\": " + test::json_string(t) + "}" : test::json_string(t);
  }
  return all + "]\n";
}

TEST(ReaderRecords, JsonIsLinesAnArrayOrValues) {
  const Texts texts = {"one", "", "tw\"o ]},[{", "\\", "th\nree"};
  EXPECT_EQ(texts_of("a.json", test::json_lines(texts)), texts);
  EXPECT_EQ(texts_of("a.ndjson", test::json_lines(texts)), texts);
  EXPECT_EQ(texts_of("a.json", array_of(texts, true)), texts);
  EXPECT_EQ(texts_of("a.json", "\xef\xbb\xbf \n" + array_of(texts, false)), texts);
  EXPECT_EQ(texts_of("a.json", "{\n  \"text\": \"one\"\n}\n{\n \"text\":\n\"two\" } {\"text\": \"three\"}"),
            (Texts{"one", "two", "three"}));
  EXPECT_EQ(texts_of("a.json", "{\"text\": \"one\"}"), Texts{"one"});
}

// More than a batch, cut into batches at every kind of byte.
TEST(ReaderRecords, LargeArraysAreTheSameForAnyThreadCount) {
  Texts texts = test::some_documents(600);
  for (int i = 0; i < 40; ++i) texts.push_back(std::string(300'000 + 1000 * i, static_cast<char>('a' + i % 26)) + "\"]}");
  const TempDir dir;
  const std::string content = array_of(texts, true);
  ASSERT_GT(content.size(), size_t{10} << 20);
  for (const Packed& p : kAll)
    for (const int threads : {1, 3}) {
      const std::string path = dir.write("a.json" + p.suffix, p.pack(content));
      const auto file = open_documents(path, {.cache_dir = dir.path(std::to_string(threads)), .threads = threads});
      EXPECT_TRUE(test::read_all(*file) == texts) << p.suffix;
    }
}

TEST(ReaderRecords, BadElementsAreNamedByLine) {
  const FileReport report = records_report("a.json", "[{\"text\": \"a\"},\n 7,\n\n {\"story\": \"b\"}, {\"text\": \"c\"}]");
  EXPECT_EQ(report.documents, 2u);
  ASSERT_EQ(report.examples.size(), 2u);
  EXPECT_EQ(report.examples[0].line, 2u);
  EXPECT_EQ(report.examples[0].reason, "not a JSON object but a number");
  EXPECT_EQ(report.examples[1].line, 4u);
  EXPECT_EQ(records_report("a.json", "[{\"text\": \"a\"}] {\"text\": \"b\"}").bad, 1u) << "behind the end";
}

TEST(ReaderRecords, AnArrayWithoutItsEndIsBroken) {
  const FileReport report = records_report("a.json", "[{\"text\": \"a\"},\n {\"text\": \"b\"},\n {\"te");
  EXPECT_EQ(report.documents, 2u);
  ASSERT_TRUE(report.broken);
  EXPECT_EQ(report.broken->reason, "the JSON array does not end");
  EXPECT_TRUE(records_report("a.json", "{\n\"text\": \"a\"\n}\n{\n").broken);
}

TEST(ReaderRecords, TextsBetweenSeparators) {
  const ReaderOptions lines{.separator = "line"}, blank{.separator = "blank_line"}, mark{.separator = "<|endoftext|>"};
  EXPECT_EQ(texts_of("a.txt",
                     "\xef\xbb\xbf"
                     "one\r\n\n two\nthree",
                     lines),
            (Texts{"one", " two", "three"}));
  EXPECT_EQ(texts_of("a.txt", "\none\nmore\n \t\r\n\n\ntwo\r\n\r\nthree\n", blank), (Texts{"one\nmore", "two", "three"}));
  EXPECT_EQ(texts_of("a.txt", "one\n\ntwo\n<|endoftext|>\n<|endoftext|>\nthree<|endoftext|>\n", mark), (Texts{"one\n\ntwo", "three"}));
  EXPECT_EQ(texts_of("a.txt", "one\n\ntwo\n"), Texts{"one\n\ntwo\n"}) << "without one the file is a document";
}

TEST(ReaderRecords, SeparatorsAcrossBatches) {
  Texts texts;
  for (int i = 0; i < 3000; ++i) texts.push_back(std::to_string(i) + std::string(static_cast<size_t>(i) * 7 % 9000, 'x') + "\ny");
  for (const auto& [separator, between] : {std::pair<std::string, std::string>{"blank_line", "\n \n"}, {"<|end|>", "\n<|end|>\n"}}) {
    std::string content;
    for (const std::string& t : texts) content += t + between;
    ASSERT_GT(content.size(), size_t{9} << 20);
    EXPECT_TRUE(texts_of("a.txt", content, {.separator = separator}) == texts) << separator;
  }
}

TEST(ReaderRecords, SeparatorsThatOverlapThemselvesCutTheSameEverywhere) {
  // Several batches; from the right the last separator of each is another one.
  Texts texts;
  std::string content;
  while (content.size() < size_t{9} << 20) {
    texts.push_back(std::string(40 + texts.size() % 5, 'x'));
    content += texts.back() + "-----";
    texts.back().insert(0, texts.size() > 1 ? "--" : "");
  }
  texts.emplace_back("--");
  EXPECT_TRUE(texts_of("a.txt", content, {.separator = "---"}) == texts);
}

TEST(ReaderRecords, SeparatorsHaveIndicesOfTheirOwn) {
  const TempDir dir;
  const std::string path = dir.write("a.txt", "one\ntwo\n");
  EXPECT_EQ(open_documents(path, {})->documents(), 1u);
  EXPECT_EQ(open_documents(path, {.separator = "line"})->documents(), 2u);
}

TEST(ReaderRecords, BadTextsAreNamedByLine) {
  const TempDir dir;
  const auto file = open_documents(dir.write("a.txt", "one\n\ntwo\nx\xff\n\nthree\n"), {.bad_share = 0.5, .separator = "blank_line"});
  EXPECT_EQ(test::read_all(*file), (Texts{"one", "three"}));
  ASSERT_EQ(file->report().examples.size(), 1u);
  EXPECT_EQ(file->report().examples[0].line, 3u);
  EXPECT_EQ(file->report().examples[0].reason, "invalid UTF-8");
}

}  // namespace
}  // namespace hlat
