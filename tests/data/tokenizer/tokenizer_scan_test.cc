// The hand-written scanners cut as PCRE2 does with the patterns named with them, and encoding a document in parts, cut where
// Encoder::cut says, gives the ids of the whole.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "data/tokenizer/categories.h"
#include "data/tokenizer/patterns.h"
#include "data/tokenizer/regex.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/word_scan.h"
#include "support/temp_dir.h"
#include "support/tokenizer_golden.h"

namespace hlat::test {
namespace {

namespace patterns = tokenizer::patterns;
namespace scan = tokenizer::scan;
namespace unicode = tokenizer::unicode;
using tokenizer::Regex;

// Text of all kinds: characters that matter to the patterns, words, and any code point.
class RandomText {
 public:
  explicit RandomText(uint64_t seed) : random_({.seed = seed, .stream = hash_name("tokenizer test"), .purpose = Noise::data}) {}

  std::string next(uint64_t max_parts) {
    static const std::vector<std::string> parts = {"the",
                                                   "boats",
                                                   " ",
                                                   "  ",
                                                   "   ",
                                                   "\n",
                                                   "\r\n",
                                                   "\t",
                                                   " \n ",
                                                   "\u00a0",
                                                   "\u3000",
                                                   "\u2028",
                                                   "\u0085",
                                                   "'s",
                                                   "'LL",
                                                   "'ve",
                                                   "'",
                                                   "'ſ",
                                                   "1",
                                                   "22",
                                                   "333",
                                                   "٣",
                                                   "½",
                                                   ".",
                                                   "--",
                                                   "!?",
                                                   "é",
                                                   "e\u0301",
                                                   "船",
                                                   "の",
                                                   "각",
                                                   "Я",
                                                   "ß",
                                                   "ſ",
                                                   "\u0301",
                                                   "\u0323",
                                                   "\u200d",
                                                   "😀",
                                                   "👩\u200d👧",
                                                   "\u2581",
                                                   "<s>",
                                                   "</s>",
                                                   "<|endoftext|>",
                                                   "<mask>",
                                                   "<word>",
                                                   "the boat",
                                                   "<pad>",
                                                   "x",
                                                   "_",
                                                   std::string(1, '\0'),
                                                   "\x1b",
                                                   "a",
                                                   "counted",
                                                   "\u1100\u1161",
                                                   "\u11a8"};
    std::string out;
    const uint64_t n = 1 + random_.below(max_parts);
    for (uint64_t i = 0; i < n; ++i) {
      if (random_.below(12) != 0) {
        out += parts[random_.below(parts.size())];
        continue;
      }
      const auto code = static_cast<uint32_t>(random_.below(random_.below(2) == 0 ? 0x3000 : 0x110000));
      if (code < 0xD800 || code > 0xDFFF) unicode::append(out, code);
    }
    return out;
  }
  uint64_t below(uint64_t n) { return random_.below(n); }

 private:
  RandomStream random_;
};

template <class Scanner>
std::vector<size_t> scanned(const std::string& text) {
  std::vector<size_t> ends;
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    p = Scanner::next(p, end);
    ends.push_back(static_cast<size_t>(p - text.data()));
  }
  return ends;
}

std::vector<size_t> matched(Regex::Search& search, const std::string& text) {
  std::vector<size_t> ends;
  Regex::Range m{};
  for (size_t from = 0; from < text.size(); from = m.end) {
    if (!search.find(text, from, m) || m.begin != from) return {};  // the patterns leave nothing out
    ends.push_back(m.end);
  }
  return ends;
}

template <class Scanner>
void agree(std::string_view pattern) {
  const Regex regex{std::string(pattern)};
  Regex::Search search(regex);
  RandomText random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = random.next(20);
    ASSERT_EQ(scanned<Scanner>(text), matched(search, text)) << pattern << "\n" << text;
  }
  // Every code point, after a letter, a space and a sign.
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    if (c == 0x34000) c = 0xE0000;  // nothing is assigned between, nor beyond the planes for private use
    if (c == 0xE1000) break;
    std::string text = "a";
    for (const char* before : {"", " a", "1 ", ".", "  "}) {
      text += before;
      unicode::append(text, c);
    }
    ASSERT_EQ(scanned<Scanner>(text), matched(search, text)) << pattern << ": U+" << std::hex << c;
  }
}

TEST(TokenizerScan, Gpt2AgreesWithItsPattern) { agree<scan::Gpt2>(patterns::kGpt2); }
TEST(TokenizerScan, Llama3AgreesWithItsPattern) { agree<scan::Llama3<3>>(patterns::kLlama3); }
TEST(TokenizerScan, Qwen2AgreesWithItsPattern) { agree<scan::Llama3<1>>(patterns::kQwen2); }

TEST(TokenizerScan, PatternsThatOtherEnginesReadDifferentlyAreRefused) {
  for (const char* pattern : {"[a[^b]]", "[a&&b]", "[^a&&[^b]]", "\\p{Greek}", "\\p{L}{1,3}+", "\\w+", "\\bx", "^x", "x$", "\\h", "(?i)x",
                              "[\\S]", "(?<n>x)", "a\\", "\\pL"})
    EXPECT_THROW(Regex{pattern}, Error) << pattern;
}

// Matches of a pattern that is one class are the code points of the tables, whichever version of Unicode PCRE2 follows.
TEST(TokenizerScan, PropertiesInPatternsAreThoseOfTheTables) {
  std::string all;
  for (uint32_t c = 0; c < 0x110000; ++c)
    if (c < 0xD800 || c > 0xDFFF) unicode::append(all, c);
  for (const char* name : {"L", "M", "N", "P", "S", "Z", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Nd", "Po", "So", "Han"}) {
    const Regex regex(fmt::format("\\p{{{}}}+", name));
    Regex::Search search(regex);
    std::vector<unicode::CodeRange> found;
    Regex::Range m{};
    for (size_t from = 0; search.find(all, from, m); from = m.end)
      found.push_back({unicode::decode(&all[m.begin]).code, unicode::decode_before(all.data(), &all[m.end]).code});
    EXPECT_EQ(found, unicode::property_ranges(name)) << name;
  }
  EXPECT_EQ(unicode::property_ranges("Greek"), std::nullopt);
}

// What recent versions of Unicode have added, which older tables do not know: these are the reference libraries' answers.
TEST(TokenizerScan, NewLettersAndSignsAreKnown) {
  const auto is = [](const char* pattern, uint32_t code) {
    std::string text;
    unicode::append(text, code);
    const Regex regex(pattern);
    Regex::Range m{};
    return Regex::Search(regex).find(text, 0, m);
  };
  EXPECT_TRUE(is("\\p{Lu}", 0x1C89));  // Unicode 16
  EXPECT_TRUE(is("\\p{Ll}", 0x1C8A));
  EXPECT_TRUE(is("[\\p{Lu}\\p{M}]", 0x10D50));
  EXPECT_TRUE(is("[\\p{P}\\p{S}]", 0x1CC00));
  EXPECT_FALSE(is("[^\\r\\n\\p{L}\\p{P}\\p{S}]", 0x1CC00));
  EXPECT_TRUE(is("[\\p{Lo}&&[^\\p{Han}]]", 0x5D0));
  EXPECT_FALSE(is("[\\p{Lo}&&[^\\p{Han}]]", 0x4E00));
  EXPECT_TRUE(is("[^(\\s|[.,])]", 'x'));
  EXPECT_FALSE(is("[^(\\s|[.,])]", ','));
}

// Documents in parts.
struct PartCheck {
  Encoder& encoder;
  std::string name;
  size_t cuts = 0;  // inside the text

  void step(std::string_view rest, bool first, size_t limit, size_t at) {
    std::vector<int32_t> whole;
    std::vector<int32_t> parts;
    first ? encoder.encode(rest, whole) : encoder.resume(rest, whole);
    first ? encoder.encode(rest.substr(0, at), parts) : encoder.resume(rest.substr(0, at), parts);
    encoder.resume(rest.substr(at), parts);
    cuts += at < rest.size() ? 1 : 0;
    EXPECT_EQ(parts, whole) << name << ": cut at " << at << " of '" << rest << "', limit " << limit;
  }
};

size_t check_cuts(const Tokenizer& tokenizer, const std::string& name, uint64_t seed, int texts) {
  RandomText random(seed);
  const auto encoder = tokenizer.encoder();
  PartCheck check{*encoder, name};
  for (int i = 0; i < texts && !testing::Test::HasFailure(); ++i) {
    const std::string text = random.next(120);
    std::string_view rest = text;
    for (bool first = true; !rest.empty(); first = false) {
      const size_t limit = 1 + random.below(40);
      const size_t at = encoder->cut(rest, limit);
      EXPECT_LE(at, limit) << name;
      if (at > 0) check.step(rest, first, limit, at);
      rest.remove_prefix(at > 0 ? at : tokenizer::unicode::border_before(rest, std::min(limit, rest.size())));
    }
  }
  return check.cuts;
}

TEST(TokenizerCut, PartsGiveTheIdsOfTheWhole) {
  for (const char* file : {"gpt2.json", "llama3.json", "neox.json", "added.json", "qwen2.json", "smollm.json", "llama2.json", "bpe.model",
                           "bpe_unk.model", "llama3.model"})
    EXPECT_GT(check_cuts(*load_tokenizer_fixture(file), file, 3, 400), 500u) << file;
}

TEST(TokenizerCut, PartsGiveTheIdsOfTheWholeWithOtherSections) {
  const TempDir scratch;
  for (const GoldenRow& row : load_golden("golden.jsonl").rows) {
    if (row.patch.is_null() || (row.patch.contains("normalizer") && !row.patch.contains("pre_tokenizer"))) continue;
    check_cuts(*load_golden_tokenizer(row, tokenizer_fixture(""), scratch.path()), row.name, 4, 60);
  }
}

TEST(TokenizerCut, PartsGiveTheIdsOfTheWholeForPublishedFamilies) {
  const TempDir scratch;
  size_t cuts = 0;
  for (const GoldenRow& row : load_golden("golden_families.jsonl").rows)
    if (row.file != "unigram.model")
      cuts += check_cuts(*load_golden_tokenizer(row, tokenizer_fixture(""), scratch.path()), row.name, 6, 40);
  EXPECT_GT(cuts, 1000u);
}

TEST(TokenizerCut, LongDocumentsInPieces) {
  const auto tokenizer = load_tokenizer(tokenizer_fixture("llama3.json"));
  RandomText random(5);
  const std::string text = random.next(60000);
  const auto encoder = tokenizer->encoder();
  std::vector<int32_t> whole;
  encoder->encode(text, whole);
  std::vector<int32_t> parts;
  const size_t first = encoder->cut(text, 10000);
  encoder->encode(std::string_view(text).substr(0, first), parts);
  for (std::string_view rest = std::string_view(text).substr(first); !rest.empty();) {
    const size_t at = encoder->cut(rest, 10000);
    encoder->resume(rest.substr(0, at), parts);
    rest.remove_prefix(at);
  }
  EXPECT_EQ(parts, whole);
}

}  // namespace
}  // namespace hlat::test
