// Text of tokens as they come: the pieces together are what decoding all tokens gives, for every kind of tokenizer.
#include "eval/text_stream.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "data/tokenizer/unicode.h"
#include "support/temp_dir.h"
#include "support/text_data.h"
#include "support/tokenizer_golden.h"

namespace hlat::test {
namespace {

namespace unicode = tokenizer::unicode;

std::string readable(const std::string& text) {
  std::string buffer;
  return std::string(unicode::valid(text, buffer));
}

// All at once: decoded, made readable, and cut at the stop string that ends first.
std::string at_once(const Tokenizer& tokenizer, std::vector<int32_t> ids, const std::vector<std::string>& stop) {
  std::erase_if(ids, [&](int32_t id) { return id == tokenizer.bos() || id == tokenizer.eos(); });
  const std::string text = readable(tokenizer.decode(ids));
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& s : stop)
      if (s.size() <= end && text.compare(end - s.size(), s.size(), s) == 0) longest = std::max(longest, s.size());
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

std::string streamed(const Tokenizer& tokenizer, std::span<const int32_t> ids, const std::vector<std::string>& stop,
                     std::span<const int32_t> before = {}) {
  TextStream stream(tokenizer, stop, before);
  std::string text;
  const auto take = [&](const std::string& piece) {
    EXPECT_EQ(readable(piece), piece) << "a piece has whole characters";
    text += piece;
  };
  for (size_t i = 0; i < ids.size() && !stream.stopped(); ++i) take(stream.add(ids[i]));
  take(stream.finish());
  EXPECT_EQ(stream.finish(), "") << "nothing comes twice";
  return text;
}

size_t border_before(const std::string& text, size_t at) {
  while (at > 0 && at < text.size() && unicode::is_continuation(text[at])) --at;
  return at;
}

// Parts of the text that are sure to be found, one that is not, and one that ends within another.
std::vector<std::string> stops_of(const std::string& text, RandomStream& random) {
  std::vector<std::string> stop = {"never there"};
  for (int i = 0; i < 2 && !text.empty(); ++i) {
    const size_t begin = border_before(text, random.below(text.size()));
    const size_t end = border_before(text, std::min(text.size(), begin + random.below(12)));
    if (end > begin) stop.push_back(text.substr(begin, end - begin));
  }
  return stop;
}

void check_ids(const std::string& name, const Tokenizer& tokenizer, const std::vector<int32_t>& ids, RandomStream& random) {
  const std::string whole = at_once(tokenizer, ids, {});
  EXPECT_EQ(streamed(tokenizer, ids, {}), whole) << name;
  const std::vector<std::string> stop = stops_of(whole, random);
  EXPECT_EQ(streamed(tokenizer, ids, stop), at_once(tokenizer, ids, stop)) << name;
  // Going on after a part of them that ends with a whole character.
  const size_t split = ids.empty() ? 0 : random.below(ids.size());
  const std::span<const int32_t> first = std::span(ids).first(split);
  const std::string before = tokenizer.decode(first);
  if (at_once(tokenizer, {first.begin(), first.end()}, {}) != before) return;
  EXPECT_EQ(streamed(tokenizer, std::span(ids).subspan(split), {}, first), whole.substr(before.size())) << name << ", split " << split;
}

void check_tokenizer(const std::string& name, const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  RandomStream random({.seed = 1, .stream = hash_name(name), .purpose = Noise::data});
  const auto encoder = tokenizer.encoder();
  for (const std::string& text : texts) {
    std::vector<int32_t> ids;
    encoder->encode(text, ids);
    check_ids(name, tokenizer, ids, random);
  }
  for (int i = 0; i < 20; ++i) {
    std::vector<int32_t> ids(random.below(40));
    for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(tokenizer.vocab_size())));
    check_ids(name + ", random ids", tokenizer, ids, random);
  }
}

TEST(TextStream, PiecesAreTheWholeForEveryKindOfTokenizer) {
  const TempDir scratch;
  for (const char* file : {"golden.jsonl", "golden_families.jsonl"}) {
    const Golden golden = load_golden(file);
    for (const GoldenRow& row : golden.rows) {
      std::vector<std::string> texts;
      for (const size_t t : row.texts) texts.push_back(golden.texts[t]);
      check_tokenizer(row.name, *load_golden_tokenizer(row, tokenizer_fixture(""), scratch.path()), texts);
    }
  }
}

TEST(TextStream, PiecesAreTheWholeForPublishedTokenizers) {
  const std::string folder = published_tokenizers();
  if (folder.empty()) GTEST_SKIP() << "there are no published tokenizers on this machine";
  const std::vector<std::string> texts = load_golden("golden.jsonl").texts;
  for (const char* file :
       {"gpt2/tokenizer.json", "gpt_neox/20B_tokenizer.json", "llama2/tokenizer.json", "llama2/tokenizer.model", "llama3/tokenizer.model"})
    check_tokenizer(file, *load_tokenizer(folder + "/" + file), texts);
}

// ByteTokenizer has a token for each byte: 259 more than it inside a word.
std::vector<int32_t> bytes(const std::string& text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c) + 259);
  return ids;
}

std::vector<std::string> pieces(const std::string& text, const std::vector<std::string>& stop) {
  const ByteTokenizer tokenizer;
  TextStream stream(tokenizer, stop);
  std::vector<std::string> out;
  for (const int32_t id : bytes(text)) out.push_back(stream.add(id));
  out.push_back(stream.finish());
  return out;
}

using Pieces = std::vector<std::string>;

TEST(TextStream, ACharacterOfSeveralTokensComesWhole) {
  EXPECT_EQ(pieces("a\xE2\x82\xAC!", {}), (Pieces{"a", "", "", "\xE2\x82\xAC", "!", ""}));
  EXPECT_EQ(pieces("\xF0\x9F\x98\x80", {}), (Pieces{"", "", "", "\xF0\x9F\x98\x80", ""}));
}

TEST(TextStream, BytesThatAreNoCharacterBecomeOneSignEach) {
  EXPECT_EQ(pieces("\xE2\x82x", {}), (Pieces{"", "", "\xEF\xBF\xBDx", ""})) << "one sign for a beginning that does not go on";
  EXPECT_EQ(pieces("\xFF\xFE", {}), (Pieces{"", "\xEF\xBF\xBD", "\xEF\xBF\xBD"}));
  EXPECT_EQ(pieces("ok\xF0\x9F", {}), (Pieces{"o", "k", "", "", "\xEF\xBF\xBD"})) << "the tokens end within a character";
}

TEST(TextStream, StopStringsAreFoundAcrossTokensAndCutOff) {
  EXPECT_EQ(pieces("ab\n\ncd", {"\n\n"}), (Pieces{"a", "b", "", "", "", "", ""}));
  EXPECT_EQ(pieces("ab\ncd", {"\n\n"}), (Pieces{"a", "b", "", "\nc", "d", ""})) << "held back, and given when it is none";
  EXPECT_EQ(pieces("ab\n", {"\n\n"}), (Pieces{"a", "b", "", "\n"})) << "the tokens end before it is complete";
  EXPECT_EQ(pieces("aab", {"aab", "x"}), (Pieces{"", "", "", ""}));
  EXPECT_EQ(pieces("aaab", {"aab"}), (Pieces{"", "", "a", "", ""})) << "it begins one later";
}

TEST(TextStream, TheStopStringThatIsCompleteFirstCounts) {
  EXPECT_EQ(pieces("xabcd", {"abcd", "c"}), (Pieces{"x", "", "", "ab", "", ""}));
  EXPECT_EQ(pieces("xabc", {"c", "abc"}), (Pieces{"x", "", "", "", ""})) << "the longest of those that end there";
}

TEST(TextStream, AStopStringMayHaveCharactersOfSeveralTokens) {
  EXPECT_EQ(pieces("a\xE2\x82\xAC!", {"\xE2\x82\xAC"}), (Pieces{"a", "", "", "", "", ""}));
  EXPECT_EQ(pieces("a\xE2\x82\xAD", {"\xE2\x82\xAC"}), (Pieces{"a", "", "", "\xE2\x82\xAD", ""}));
}

TEST(TextStream, ASentencePieceTextThatGoesOnKeepsItsBlank) {
  const auto tokenizer = load_tokenizer_fixture("llama2.json");
  std::vector<int32_t> prompt, both;
  tokenizer->encoder()->encode("the people", prompt);
  tokenizer->encoder()->encode("the people of", both);
  ASSERT_GT(both.size(), prompt.size());
  ASSERT_TRUE(std::equal(prompt.begin(), prompt.end(), both.begin()));
  const std::span<const int32_t> rest = std::span(both).subspan(prompt.size());
  EXPECT_EQ(streamed(*tokenizer, rest, {}, prompt), " of");
  EXPECT_EQ(streamed(*tokenizer, rest, {}), "of") << "a text of its own begins without it";
}

TEST(TextStream, TheTokensThatBeginAndEndDocumentsAddNothing) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(streamed(tokenizer, std::vector<int32_t>{1, 'a' + 3, 1, 'b' + 259, 2}, {}), "ab");
}

}  // namespace
}  // namespace hlat::test
