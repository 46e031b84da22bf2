// Ids and decoded text are those of the reference libraries: on our own small tokenizers of every kind, on variants of their
// sections, and on the published tokenizers where this machine has them.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode.h"
#include "support/temp_dir.h"
#include "support/tokenizer_golden.h"

namespace hlat::test {
namespace {

namespace unicode = tokenizer::unicode;

std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.encoder()->encode(text, ids);
  return ids;
}

// Libraries write U+FFFD for bytes that are no characters, we give the bytes.
std::string readable(const std::string& text) {
  std::string buffer;
  return std::string(unicode::valid(text, buffer));
}

void check(const Golden& golden, const GoldenRow& row, const Tokenizer& tokenizer) {
  const auto encoder = tokenizer.encoder();
  for (size_t i = 0; i < row.ids.size(); ++i) {
    const std::string& text = golden.texts[row.texts[i]];
    std::vector<int32_t> ids = {-7};  // encode appends
    encoder->encode(text, ids);
    ids.erase(ids.begin());
    EXPECT_EQ(ids, row.ids[i]) << row.name << ": text " << row.texts[i] << ": " << text;
    EXPECT_EQ(readable(tokenizer.decode(row.ids[i])), row.decoded[i]) << row.name << ": text " << row.texts[i];
  }
}

TEST(TokenizerGolden, OwnFixturesOfEveryKind) {
  const Golden golden = load_golden("golden.jsonl");
  ASSERT_GE(golden.rows.size(), 40u);
  const TempDir scratch;
  for (const GoldenRow& row : golden.rows) check(golden, row, *load_golden_tokenizer(row, tokenizer_fixture(""), scratch.path()));
}

// The pipelines of published families on our small vocabularies, and every normalizer.
TEST(TokenizerGolden, PipelinesOfPublishedFamilies) {
  const Golden golden = load_golden("golden_families.jsonl");
  ASSERT_GE(golden.rows.size(), 40u);
  ASSERT_GE(golden.texts.size(), 100u);
  const TempDir scratch;
  for (const GoldenRow& row : golden.rows) check(golden, row, *load_golden_tokenizer(row, tokenizer_fixture(""), scratch.path()));
}

TEST(TokenizerGolden, PublishedTokenizers) {
  const std::string folder = published_tokenizers();
  if (folder.empty()) GTEST_SKIP() << "no ../shared/data/tokenizers";
  const Golden golden = load_golden("golden_published.jsonl");
  for (const GoldenRow& row : golden.rows) check(golden, row, *load_tokenizer(folder + "/" + row.file));
}

// llama.cpp's vectors: texts that each end with a line of their own, a line of ids for each.
TEST(TokenizerGolden, VectorsOfLlamaCpp) {
  const std::string folder = published_tokenizers();
  if (folder.empty()) GTEST_SKIP() << "no ../shared/data/tokenizers";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"gpt-2", "gpt2/tokenizer.json"}, {"llama-bpe", "llama3/tokenizer.model"}, {"llama-spm", "llama2/tokenizer.model"}};
  for (const auto& [vectors, file] : cases) {
    const auto tokenizer = load_tokenizer(folder + "/" + file);
    const std::string base = folder + "/ggml_vocab/ggml-vocab-" + vectors + ".gguf";
    const std::string texts = slurp(base + ".inp");
    std::ifstream expected(base + ".out");
    const std::string separator = "\n__ggml_vocab_test__\n";
    size_t count = 0;
    for (size_t at = 0, end = 0; (end = texts.find(separator, at)) != std::string::npos; at = end + separator.size(), ++count) {
      std::string line;
      ASSERT_TRUE(std::getline(expected, line));
      std::istringstream numbers(line);
      const std::vector<int32_t> ids{std::istream_iterator<int32_t>(numbers), {}};
      EXPECT_EQ(encode(*tokenizer, std::string_view(texts).substr(at, end - at)), ids) << vectors << ": text " << count;
    }
    EXPECT_GT(count, 20u);
  }
}

TEST(TokenizerGolden, BytesThatAreNotUtf8CountAsReplacementCharacters) {
  // Each pair: bytes, and the text they count as (Unicode's rule: one U+FFFD for a maximal part).
  const std::string r = "\xEF\xBF\xBD";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\xFFz", "a" + r + "z"},
      {"\x80\x80", r + r},
      {"\xE2\x82", r},
      {"\xE2\x82z", r + "z"},
      {"\xF0\x9F\x98 x", r + " x"},
      {"\xC0\xAF", r + r},
      {"\xED\xA0\x80", r + r + r},
      {"\xF4\x90\x80\x80", r + r + r + r},
      {"\xE0\x9F\xBF", r + r + r},
      {"ok \xF0\x9F\x98\x80\xF0\x9F", "ok \xF0\x9F\x98\x80" + r},
  };
  for (const char* file : {"gpt2.json", "llama2.json", "bpe.model", "unigram.model", "llama3.model"}) {
    const auto tokenizer = load_tokenizer_fixture(file);
    for (const auto& [bytes, text] : cases) EXPECT_EQ(encode(*tokenizer, bytes), encode(*tokenizer, text)) << file << ": " << text;
  }
}

}  // namespace
}  // namespace hlat::test
