// Files as a source: documents in order over files, EOS and BOS, long texts in pieces with the same ids, bad tokens named.
#include "data/file_source.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/message_of.h"
#include "support/temp_dir.h"
#include "support/text_data.h"
#include "support/tokenizer_golden.h"

namespace hlat {
namespace {

template <class... File>
std::unique_ptr<FileSource> source_of(const Tokenizer& tokenizer, const SpecialTokens& special, File... file) {
  std::vector<std::unique_ptr<DocumentFile>> files;
  (files.push_back(std::make_unique<MemoryFile>(std::move(file))), ...);
  return std::make_unique<FileSource>("web", std::move(files), tokenizer, special);
}

using Texts = std::vector<std::string>;
using Ids = std::vector<std::vector<int32_t>>;

// All pieces of a document, each begun anew as after a restart.
std::vector<int32_t> read_all(const FileSource& source, uint64_t document, int* pieces = nullptr) {
  std::vector<int32_t> ids;
  uint64_t from = 0;
  do {
    Document piece;
    from = source.reader()->read(document, from, DocumentReader::kEnd, piece);
    ids.insert(ids.end(), piece.tokens.begin(), piece.tokens.end());
    if (pieces != nullptr) ++*pieces;
  } while (from != 0);
  return ids;
}

std::vector<int32_t> encoded(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids;
  tokenizer.encoder()->encode(text, ids);
  return ids;
}

TEST(FileSource, DocumentsOfAllFilesInOrder) {
  const ByteTokenizer tokenizer;
  const Texts texts = {"a b", "", "cde", "f"};
  const auto source = source_of(tokenizer, {.eos = 2, .bos = {}}, MemoryFile("1.txt", Texts{"a b"}), MemoryFile("2.txt", Texts{}),
                                MemoryFile("3.txt", Texts{"", "cde", "f"}));
  ASSERT_EQ(source->documents(), 4u);
  for (uint64_t i = 0; i < 4; ++i) {
    std::vector<int32_t> expected = encoded(tokenizer, texts[i]);
    expected.push_back(2);
    EXPECT_EQ(read_all(*source, i), expected);
    EXPECT_EQ(source->hash(i), hash_name(texts[i]));
  }
  EXPECT_EQ(source->identity().size(), 3u);
  EXPECT_EQ(source->part_name(2), "3.txt");
  EXPECT_THROW(source->hash(4), CheckFailed);
  const auto marked = source_of(tokenizer, {.eos = 2, .bos = 1}, MemoryFile("1.txt", Texts{"a"}));
  EXPECT_EQ(read_all(*marked, 0), (std::vector<int32_t>{1, 'a' + 3, 2}));
}

TEST(FileSource, LongTextsInPiecesHaveTheSameIds) {
  const ByteTokenizer tokenizer;
  Texts texts = {std::string(2 * kPieceBytes + 17, 'x'), std::string(kPieceBytes, 'x'), std::string(kPieceBytes + 1, ' '), ""};
  while (texts[3].size() < 3 * kPieceBytes) texts[3] += "word" + std::to_string(texts[3].size()) + " ";
  const auto source = source_of(tokenizer, {.eos = 2, .bos = 1}, MemoryFile("long.txt", texts));
  const std::vector<int> pieces = {3, 1, 2, 4};
  for (uint64_t i = 0; i < texts.size(); ++i) {
    std::vector<int32_t> expected = encoded(tokenizer, texts[i]);
    expected.insert(expected.begin(), 1);
    expected.push_back(2);
    int count = 0;
    EXPECT_EQ(read_all(*source, i, &count), expected) << i;
    EXPECT_EQ(count, pieces[i]) << i;
  }
}

// A document cut anywhere in two has the ids of the whole, for every way in which tokenizers find such places.
TEST(FileSource, ADocumentCutAnywhereHasTheIdsOfTheWhole) {
  std::string text;
  for (int i = 0; text.size() < 40'000; ++i)
    text += i % 7 == 0   ? "\n\nChapter " + std::to_string(i) + ": "
            : i % 5 == 0 ? "\xE4\xB8\xAD\xE6\x96\x87, don't "
                         : "some words of text, ";
  for (const char* name : {"gpt2.json", "llama3.json", "qwen2.json", "neox.json", "llama2.json", "bpe.model", "llama3.model"}) {
    const auto tokenizer = test::load_tokenizer_fixture(name);
    const auto source = source_of(*tokenizer, {.eos = 2, .bos = 1}, MemoryFile("long.txt", Texts{text}));
    const std::vector<int32_t> whole = read_all(*source, 0);
    const auto reader = source->reader();
    for (uint64_t near = 100; near < text.size(); near += 3331) {
      const uint64_t cut = reader->cut(0, near);
      ASSERT_TRUE(cut > 0 && cut <= near && near - cut < 200) << name << " " << cut << " for " << near;
      Document first, second;
      EXPECT_EQ(reader->read(0, 0, cut, first), cut);
      EXPECT_EQ(reader->read(0, cut, DocumentReader::kEnd, second), 0u);
      first.tokens.insert(first.tokens.end(), second.tokens.begin(), second.tokens.end());
      EXPECT_EQ(first.tokens, whole) << name << " cut at " << cut;
    }
  }
}

TEST(FileSource, TextWithoutASafePlaceIsNotCut) {
  const ByteTokenizer tokenizer;
  const auto source = source_of(tokenizer, {.eos = 2, .bos = {}}, MemoryFile("blob.txt", Texts{"a " + std::string(50'000, 'x')}));
  EXPECT_EQ(source->reader()->cut(0, 40'000), 1u) << "the only blank";
  const auto none = source_of(tokenizer, {.eos = 2, .bos = {}}, MemoryFile("blob.txt", Texts{std::string(50'000, 'x')}));
  EXPECT_EQ(none->reader()->cut(0, 40'000), 0u);
  // Where a piece would have to be cut anywhere, so is the text between lanes: else one lane would have it all.
  const auto endless = source_of(tokenizer, {.eos = 2, .bos = {}}, MemoryFile("blob.txt", Texts{std::string(3 * kPieceBytes, 'x')}));
  EXPECT_EQ(endless->reader()->cut(0, 2 * kPieceBytes), 2 * kPieceBytes);
}

// Digits are cut into threes from where the digits begin, which is far before any window of text that is looked at.
TEST(FileSource, ACutKeepsGroupsThatAreCountedFromAfar) {
  const test::TempDir dir;
  std::ifstream file(test::tokenizer_fixture("llama3.json"));
  nlohmann::json json = nlohmann::json::parse(file);
  json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = R"(\p{N}{1,3}|[^\s\p{L}\p{N}]+|\p{L}+|\s+)";
  const auto tokenizer = load_tokenizer(dir.write("tokenizer.json", json.dump()));
  std::string text = "x ";
  for (int i = 0; i < 60'004; ++i) text += static_cast<char>('0' + i * 7 % 10);
  const auto source = source_of(*tokenizer, {.eos = 2, .bos = {}}, MemoryFile("digits.txt", Texts{text}));
  const std::vector<int32_t> whole = read_all(*source, 0);
  const auto reader = source->reader();
  for (const uint64_t near : {20'000u, 30'001u, 30'002u, 59'000u}) {
    const uint64_t cut = reader->cut(0, near);
    if (cut == 0) continue;  // none is better than a wrong one
    Document first, second;
    reader->read(0, 0, cut, first);
    reader->read(0, cut, DocumentReader::kEnd, second);
    first.tokens.insert(first.tokens.end(), second.tokens.begin(), second.tokens.end());
    EXPECT_EQ(first.tokens, whole) << "cut at " << cut << " for " << near;
  }
}

TEST(FileSource, TokenFilesAreReadAsTheyAre) {
  const ByteTokenizer tokenizer;
  std::vector<int32_t> many(kPieceBytes / 4 + 5, 7);
  const auto source = source_of(tokenizer, {.eos = 2, .bos = {}}, MemoryFile("t.bin", Ids{{5, 6}, {5, 2}, many, {5, 515}, {-1}}));
  EXPECT_EQ(read_all(*source, 0), (std::vector<int32_t>{5, 6, 2}));
  EXPECT_EQ(read_all(*source, 1), (std::vector<int32_t>{5, 2})) << "it has its end already";
  int pieces = 0;
  many.push_back(2);
  EXPECT_EQ(read_all(*source, 2, &pieces), many);
  EXPECT_EQ(pieces, 2);
  EXPECT_EQ(message_of([&] { read_all(*source, 3); }), "t.bin: document 3 has token 515, but the tokenizer's vocabulary has 515");
  EXPECT_EQ(message_of([&] { read_all(*source, 4); }), "t.bin: document 4 has token -1, but the tokenizer's vocabulary has 515");
}

TEST(FileSource, APositionBehindTheEndIsRefused) {
  const ByteTokenizer tokenizer;
  const auto source = source_of(tokenizer, {.eos = 2, .bos = {}}, MemoryFile("a.txt", Texts{"abc"}));
  Document out;
  EXPECT_NE(message_of([&] { source->reader()->read(0, 4, DocumentReader::kEnd, out); }).find("belongs to other data"), std::string::npos);
}

}  // namespace
}  // namespace hlat
