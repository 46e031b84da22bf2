// Plain .jsonl and .txt files: what is a document, what is bad and where, any number of threads, huge lines.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "data/reader/content_hash.h"
#include "data/reader/document_file.h"
#include "support/documents.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace hlat {
namespace {

using test::TempDir;
using Texts = std::vector<std::string>;

Texts texts_of(const std::string& content, const ReaderOptions& options = {}) {
  const TempDir dir;
  return test::read_all(*open_documents(dir.write("a.jsonl", content), options));
}

FileReport report_of(const std::string& content, const std::string& name = "a.jsonl") {
  const TempDir dir;
  return open_documents(dir.write(name, content), {.bad_share = 1.0})->report();
}

// The only bad line of a file that has a good one before and one behind it.
std::string reason_of(const std::string& line) {
  const FileReport report = report_of("{\"text\": \"a\"}\n" + line + "\n{\"text\": \"b\"}\n");
  if (report.bad != 1 || report.documents != 2 || report.examples.at(0).line != 2) return "not one bad line";
  return report.examples[0].reason;
}

TEST(ReaderJsonl, GivesTextsLengthsAndHashes) {
  const TempDir dir;
  const Texts texts = test::some_documents(500);
  const auto file = open_documents(dir.write("a.jsonl", test::json_lines(texts)), {});
  EXPECT_TRUE(test::read_all(*file) == texts);
  EXPECT_TRUE(test::read_all_in_parts(*file, 1001) == texts);
  EXPECT_FALSE(file->tokenized());
  uint64_t bytes = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(file->length(i), texts[i].size());
    EXPECT_EQ(file->hash(i), reader::hash_content(texts[i]));
    bytes += texts[i].size();
  }
  EXPECT_EQ(file->report().bytes, bytes);
  EXPECT_EQ(file->report().bad, 0u);
}

TEST(ReaderJsonl, EscapingDoesNotChangeTheHash) {
  const TempDir dir;
  const auto file =
      open_documents(dir.write("a.jsonl", "{\"text\": \"\\u00e9\\/\\n\\ud83d\\ude42\"}\n{ \"x\" : 1, \"text\":\"é/\\u000a🙂\"}"), {});
  ASSERT_EQ(file->documents(), 2u);
  EXPECT_EQ(file->hash(0), file->hash(1));
}

TEST(ReaderJsonl, AcceptsLineEndsMarksAndBlankLines) {
  EXPECT_EQ(texts_of("\xef\xbb\xbf{\"text\": \"a\"}\r\n\r\n  \t\n\n{\"text\": \"b\"}\r\n{\"text\": \"c\"}"), (Texts{"a", "b", "c"}));
  EXPECT_EQ(texts_of("{\"text\": \"a\"}\n\xef\xbb\xbf{\"text\": \"b\"}\n"), (Texts{"a", "b"}));
  EXPECT_EQ(report_of("\n\n{\"text\": \"a\"}\n\n").bad, 0u);
}

TEST(ReaderJsonl, TakesAnyFieldAndTheFirstOfEqualNames) {
  EXPECT_EQ(texts_of("{\"text\": 1, \"content\": \"a\"}\n", {.field = "content"}), Texts{"a"});
  EXPECT_EQ(texts_of("{\"te xt\\n\": \"a\"}\n", {.field = "te xt\n"}), Texts{"a"});  // names are compared decoded
  EXPECT_EQ(texts_of("{\"text\": \"a\", \"text\": \"b\"}\n"), Texts{"a"});
}

TEST(ReaderJsonl, EmptyTextIsADocument) {
  const FileReport report = report_of("{\"text\": \"\"}\n{\"text\": \"a\"}\n");
  EXPECT_EQ(report.documents, 2u);
  EXPECT_EQ(report.bad, 0u);
}

TEST(ReaderJsonl, NulInTextIsKeptWhenEscapedAndBadWhenNot) {
  EXPECT_EQ(texts_of("{\"text\": \"a\\u0000b\"}\n"), Texts{std::string("a\0b", 3)});
  EXPECT_EQ(reason_of(std::string("{\"text\": \"a\0b\"}", 15)), "malformed JSON: a control character in a string");
}

TEST(ReaderJsonl, NamesWhatIsBad) {
  EXPECT_EQ(reason_of("{\"text\": \"a\""), "malformed JSON");
  EXPECT_EQ(reason_of("{\"text\": \"a}"), "malformed JSON: a string without its end");
  EXPECT_EQ(reason_of("{\"text\": \"a\"} x"), "malformed JSON");
  EXPECT_EQ(reason_of("{\"text\": \"a\", \"meta\": {\"b\": }}"), "malformed JSON");
  EXPECT_EQ(reason_of("{\"text\": \"\\ud800\"}"), "malformed JSON: a broken escape in a string");
  EXPECT_EQ(reason_of("{\"text\": \"\xff\"}"), "invalid UTF-8");
  EXPECT_EQ(reason_of("{\"text\": \"a\", \"b\": \"\xc3\"}"), "invalid UTF-8");
  EXPECT_EQ(reason_of("{\"body\": \"a\", \"txt\": 1}"), "no field \"text\"; it has txt, body");  // the nearest first
  EXPECT_EQ(reason_of("{}"), "no field \"text\"; it has none");
  EXPECT_EQ(reason_of("{\"text\": 7}"), "field \"text\" is a number, not a string");
  EXPECT_EQ(reason_of("{\"text\": null}"), "field \"text\" is null, not a string");
  EXPECT_EQ(reason_of("[\"text\"]"), "not a JSON object but an array; a file that is one JSON array is read when its name ends in .json");
  EXPECT_EQ(reason_of("["), "malformed JSON; a file that is one JSON array is read when its name ends in .json");
  EXPECT_EQ(reason_of("\"text\""), "not a JSON object but a string");
}

TEST(ReaderJsonl, IntegersAbove64BitsInOtherFieldsAreNoConcern) {
  EXPECT_EQ(texts_of("{\"id\": 340282366920938463463374607431768211456, \"text\": \"a\"}\n"
                     "{\"text\": \"b 123456789012345678901234567890\", \"n\": [-99999999999999999999, 0.12345678901234567890123]}\n"
                     "{\"a\\\"1\": 18446744073709551616, \"text\": \"c\"}\n"),
            (Texts{"a", "b 123456789012345678901234567890", "c"}));
  EXPECT_EQ(reason_of("{\"text\": \"a\", \"n\": 099999999999999999999999}"), "malformed JSON") << "no number";
}

TEST(ReaderJsonl, StopsAboveTheAllowedShareWithFileAndLine) {
  const TempDir dir;
  std::string content;
  for (int i = 0; i < 1000; ++i) content += i % 50 == 49 ? "{broken\n" : "{\"text\": \"a\"}\n";  // 20 bad
  const std::string path = dir.write("a.jsonl", content);
  EXPECT_EQ(open_documents(path, {.bad_share = 0.02})->documents(), 980u);
  const std::string message = message_of([&] { open_documents(path, {.bad_share = 0.019}); });
  EXPECT_NE(message.find(path + ": 20 of 1000 documents are bad"), std::string::npos) << message;
  EXPECT_NE(message.find(path + ":50: malformed JSON"), std::string::npos) << message;
  EXPECT_NE(message.find(path + ":100: malformed JSON"), std::string::npos) << message;
  EXPECT_NE(message.find("and 12 more"), std::string::npos) << message;
}

TEST(ReaderJsonl, AFewBadDocumentsAreAllowedUnlessTheShareIsZero) {
  const TempDir dir;
  std::string good;
  for (int i = 0; i < 97; ++i) good += "{\"text\": \"a\"}\n";
  const std::string path = dir.write("a.jsonl", good + "{\n{\n{\n");
  EXPECT_EQ(open_documents(path, {})->report().bad, 3u);
  EXPECT_THROW(open_documents(path, {.bad_share = 0}), Error);
  EXPECT_THROW(open_documents(dir.write("b.jsonl", good + "{\n{\n{\n{\n"), {}), Error);
  EXPECT_THROW(open_documents(dir.write("short.jsonl", "{\"text\": \"a\"}\n{\"text\": \"a\"}\n{\"text\": \"a\"}\n{\n"), {}), UsageError);
}

TEST(ReaderJsonl, AFileWithoutAGoodDocumentIsAnErrorUnlessBrokenFilesAreAllowed) {
  const TempDir dir;
  const std::string path = dir.write("a.txt", "\xff");
  EXPECT_THROW(open_documents(path, {}), UsageError);
  EXPECT_THROW(open_documents(path, {.bad_share = 0.9}), UsageError);
  EXPECT_EQ(open_documents(path, {.allow_broken = true})->report().bad, 1u);
  EXPECT_EQ(open_documents(dir.write("empty.txt", ""), {})->documents(), 0u) << "nothing is lost of it";
}

TEST(ReaderJsonl, StopsEarlyWhenNothingIsGood) {
  const TempDir dir;
  std::string content;
  for (int i = 0; i < 5000; ++i) content += "{\"text\": \"a\"}\n";
  const std::string path = dir.write("a.jsonl", content);
  EXPECT_NE(message_of([&] { open_documents(path, {.field = "body", .bad_share = 1.0}); }).find(path + ":1: no field \"body\""),
            std::string::npos);
}

TEST(ReaderJsonl, EmptyFilesAreReported) {
  for (const char* content : {"", "\n\n"}) {
    const FileReport report = report_of(content);
    EXPECT_EQ(report.documents, 0u);
    EXPECT_EQ(report.bad, 1u);
    EXPECT_EQ(report.examples.at(0).reason, "no documents: the file is empty");
  }
  EXPECT_EQ(report_of("", "a.txt").bad, 1u);
  EXPECT_EQ(report_of("\xef\xbb\xbf", "a.txt").bad, 1u);
}

// Lines longer than the scan's ranges and buffers, borders of ranges at every place of a line.
TEST(ReaderJsonl, LongLinesAndAnyThreadCountGiveTheSame) {
  const TempDir dir;
  Texts texts;
  for (const size_t length : {1, 700'000, 3'000'000, 24'000'000, 5, 17'000'000, 0, 100}) {
    texts.emplace_back(length, 'x');
    if (length > 10) texts.back()[length / 2] = '"';
    for (const std::string& text : test::some_documents(50, length)) texts.push_back(text);
  }
  std::string content = test::json_lines(texts);
  content.insert(0, "{bad\n");
  content += "{bad again\n";
  const std::string path = dir.write("a.jsonl", content);
  const auto one = open_documents(path, {.cache_dir = dir.path("1"), .threads = 1});
  ASSERT_EQ(one->documents(), texts.size());
  EXPECT_TRUE(test::read_all(*one) == texts);
  ASSERT_EQ(one->report().examples.size(), 2u);
  EXPECT_EQ(one->report().examples[1].line, texts.size() + 2);
  for (const int threads : {2, 5}) {
    const auto many = open_documents(path, {.cache_dir = dir.path(std::to_string(threads)), .threads = threads});
    EXPECT_EQ(test::all_hashes(*many), test::all_hashes(*one));
    EXPECT_EQ(many->fingerprint(), one->fingerprint());
    EXPECT_EQ(many->report().examples[1].line, texts.size() + 2);
    const auto only_file = [&](int n) { return std::filesystem::directory_iterator(dir.path(std::to_string(n)))->path().string(); };
    EXPECT_TRUE(test::slurp(only_file(threads)) == test::slurp(only_file(1)));
  }
}

TEST(ReaderJsonl, ThreadsReadAtRandom) {
  const TempDir dir;
  const Texts texts = test::some_documents(300);
  const auto file = open_documents(dir.write("a.jsonl", test::json_lines(texts)), {});
  std::vector<int> wrong(4, 0);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&, t] {
        std::string text;
        for (size_t i = 0; i < 2000; ++i) {
          const size_t d = (i * 7919 + t * 31) % texts.size();
          file->text(d, text);
          wrong[t] += text != texts[d];
        }
      });
    }
  }
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(ReaderText, IsOneDocumentOfAnySize) {
  const TempDir dir;
  std::string text;
  while (text.size() < (5u << 20)) text += "aé日🙂\n";
  const auto file = open_documents(dir.write("a.txt", "\xef\xbb\xbf" + text), {});
  ASSERT_EQ(file->documents(), 1u);
  EXPECT_EQ(file->length(0), text.size());
  EXPECT_EQ(file->hash(0), reader::hash_content(text));
  EXPECT_TRUE(test::read_all(*file) == Texts{text});

  EXPECT_TRUE(test::read_all_in_parts(*file, 100'001) == Texts{text});
}

TEST(ReaderText, InvalidUtf8IsBadWithItsLine) {
  std::string text;
  while (text.size() < (3u << 20)) text += "line\n";
  const uint64_t lines = text.size() / 5;
  const FileReport report = report_of(text + "é\xc3\n" + text, "a.txt");
  EXPECT_EQ(report.documents, 0u);
  ASSERT_EQ(report.examples.size(), 1u);
  EXPECT_EQ(report.examples[0].line, lines + 1);
  EXPECT_EQ(report.examples[0].reason, "invalid UTF-8");
  EXPECT_EQ(report_of(std::string((1u << 20) - 1, 'a') + "\xf0\x9f\x99", "a.txt").bad, 1u);  // unfinished at the end
  EXPECT_EQ(report_of(std::string((1u << 20) - 2, 'a') + "🙂", "a.txt").documents, 1u);    // over the border of a piece
  EXPECT_EQ(report_of(std::string((1u << 20) - 2, 'a') + "\xf0\x9f\x99 ", "a.txt").bad, 1u);
}

}  // namespace
}  // namespace hlat
