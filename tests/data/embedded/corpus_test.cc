// The embedded corpus: its entropy is exact, its documents are pure functions of (seed, index), its text round-trips.
#include "data/embedded/corpus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "support/grammar_scorer.h"

namespace hlat {
namespace {

constexpr std::string_view kToy = R"(
@pet noun they kind = cat / she soft | dog wolf / he loud
@bug noun they kind = bee / it loud
story: 3* the <animal> <end> | <who>
animal: [x=pet] | 2* tiny [x=bug]
end: ran . | <sound:x.kind> .
sound_soft: meowed | 2* purred <more> | 3* {x.they} slept
sound_loud: yelled
more: softly | and purred
who: nobody | somebody <animal>
)";

double sum(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

// Worked by hand. p(cat) = 1/9, p(dog) = p(wolf) = 1/9, p(bee) = 2/3 once an animal is chosen.
TEST(Grammar, EntropyAndLengthOfAToyMatchHandCalculation) {
  const Grammar g(kToy);
  const auto h = [](std::vector<double> weights) {
    double out = 0;
    for (const double w : weights) out -= w / sum(weights) * std::log(w / sum(weights));
    return out;
  };
  const double animal = h({1, 2}) + std::log(3.0) / 3;
  const double soft = h({1, 2, 3}) + std::log(2.0) / 3;  // "purred" (2 of 6) chooses again
  const double end = h({1, 1}) + 0.5 * soft / 9;
  const double who = h({1, 1}) + 0.5 * animal;
  EXPECT_NEAR(g.document_entropy(), h({3, 1}) + 0.75 * (animal + end) + 0.25 * who, 1e-12);

  const double animal_length = 1 + 2.0 / 3;
  const double soft_length = (1 + 2 * (1 + 1.5) + 3 * 2) / 6;
  const double end_length = 1 + 0.5 * (soft_length / 9 + 8.0 / 9) + 0.5;  // "." and "ran" or a sound
  EXPECT_NEAR(g.expected_length(), 1 + 0.75 * (1 + animal_length + end_length) + 0.25 * (1 + 0.5 * animal_length), 1e-12);
}

// Needs none of the grammar's own probabilities but the scorer's: they sum to 1 over all documents and match frequencies.
TEST(Grammar, ProbabilitiesOfAllToyDocumentsSumToOneAndMatchFrequencies) {
  const Grammar g(kToy);
  RandomStream random({7, 1, Noise::data, 0});
  constexpr int kSamples = 200000;
  std::map<std::vector<int32_t>, int> seen;
  for (int i = 0; i < kSamples; ++i) ++seen[g.sample(random).tokens];
  double total = 0, entropy = 0, length = 0;
  for (const auto& [tokens, count] : seen) {
    const double p = std::exp(-sum(GrammarScorer::surprisals(g, tokens)));
    total += p;
    entropy -= p * std::log(p);
    length += p * static_cast<double>(tokens.size());
    EXPECT_NEAR(count, p * kSamples, 5 * std::sqrt(p * kSamples)) << tokens.size();
  }
  EXPECT_NEAR(total, 1, 1e-12);
  EXPECT_NEAR(entropy, g.document_entropy(), 1e-12);
  EXPECT_NEAR(length, g.expected_length(), 1e-12);
}

TEST(Grammar, RefusesWhatWouldMakeItsEntropyWrong) {
  EXPECT_THROW(Grammar("a: x y | x z\n"), CheckFailed) << "same first token";
  EXPECT_THROW(Grammar("a: <b> | x\nb: y | x\n"), CheckFailed) << "same first token, one rule deeper";
  EXPECT_THROW(Grammar("@l f = x y\na: [s=l] | y\n"), CheckFailed) << "same first token, from a list";
  EXPECT_THROW(Grammar("@l f g = x / y\nb: [s=l] <a>\na: {s.g} | y\n"), CheckFailed) << "same first token, from a mention";
  EXPECT_THROW(Grammar("@l f = x x\na: [s=l]\n"), CheckFailed) << "same word twice in a list";
  EXPECT_THROW(Grammar("a: x | \n"), CheckFailed) << "empty alternative";
  EXPECT_THROW(Grammar("a: x <b>\nb: y <a>\n"), CheckFailed) << "recursion";
  EXPECT_THROW(Grammar("a: <b>\n"), CheckFailed) << "unknown rule";
  EXPECT_THROW(Grammar("@l f g = x / y\na: {s.g} [s=l]\n"), CheckFailed) << "mention before it is filled";
  EXPECT_THROW(Grammar("@l f g = x / y\na: <b> {s.g}\nb: [s=l] | z\n"), CheckFailed) << "mention filled on one path only";
  EXPECT_THROW(Grammar("@l f g = x / y\na: <b> {s.g}\nb: z | [s=l]\n"), CheckFailed) << "the same, the other path";
  EXPECT_THROW(Grammar("@l f g = x w / y\n@k f g = p / 1 | q / 2\na: [d=k] <b:d.g> {s.g}\nb_1: [s=l]\nb_2: z\n"), CheckFailed)
      << "the same, decided by a variable";
  EXPECT_THROW(Grammar("@l f g = x / y\na: [s=l] {s.h}\n"), CheckFailed) << "unknown feature";
  EXPECT_THROW(Grammar("@l f g = x / y\n@m f = z\na: <b> {s.g}\nb: [s=l] | [s=m]\n"), CheckFailed) << "lists with other features";
  EXPECT_NO_THROW(Grammar("@l f g = x / y\na: [s=l] <b>\nb: {s.g} | z\n"));
}

TEST(Corpus, EntropyAndLengthMatchALargeSample) {
  const EmbeddedCorpus corpus(3);
  constexpr int kDocuments = 60000;
  const double h = *corpus.entropy();
  double tokens = 0, tokens2 = 0, excess = 0, excess2 = 0;
  for (int i = 0; i < kDocuments; ++i) {
    const Document d = corpus.document(i);
    const auto n = static_cast<double>(d.tokens.size());
    const double x = sum(d.surprisals) - h * n;
    tokens += n, tokens2 += n * n, excess += x, excess2 += x * x;
  }
  const auto standard_error = [](double s, double s2) {
    return std::sqrt((s2 / kDocuments - s * s / kDocuments / kDocuments) / kDocuments);
  };
  EXPECT_NEAR(tokens / kDocuments, corpus.grammar().expected_length(), 4 * standard_error(tokens, tokens2));
  EXPECT_NEAR(excess / kDocuments, 0, 4 * standard_error(excess, excess2));
  EXPECT_LT(standard_error(excess, excess2) / (tokens / kDocuments), 0.002) << "the sample is too small to say anything";
}

TEST(Corpus, HasTheAdvertisedShape) {
  const EmbeddedCorpus corpus(1);
  EXPECT_GE(corpus.tokenizer().vocab_size(), 200);
  EXPECT_LE(corpus.tokenizer().vocab_size(), 400);
  EXPECT_GT(*corpus.entropy(), 1.2);
  EXPECT_LT(*corpus.entropy(), 1.8);
  EXPECT_GT(corpus.grammar().expected_length(), 30);
  EXPECT_LT(corpus.grammar().expected_length(), 60);
}

TEST(Corpus, ScorerAgreesWithTheGenerator) {
  const EmbeddedCorpus corpus(11);
  for (uint64_t i = 0; i < 4000; ++i) {
    const Document d = corpus.document(i);
    const std::vector<double> scored = GrammarScorer::surprisals(corpus.grammar(), d.tokens);
    ASSERT_EQ(scored.size(), d.surprisals.size());
    for (size_t t = 0; t < scored.size(); ++t) ASSERT_NEAR(scored[t], d.surprisals[t], 1e-12) << i << " " << t;
  }
}

TEST(Corpus, ScorerRefusesWhatTheGrammarCannotWrite) {
  const EmbeddedCorpus corpus(11);
  const auto score = [&](std::string_view text) { return GrammarScorer::surprisals(corpus.grammar(), corpus.tokenizer().encode(text)); };
  const std::string good =
      "Lily the brave ran to the old beach. Ashore she saw a wet red shell. But it was too heavy. So she built a tiny blue raft. "
      "Lily was happy but tired.\n";
  EXPECT_NO_THROW(score(good));
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    return text.replace(text.rfind(from), from.size(), to);
  };
  EXPECT_THROW(score(with("So she", "So he")), Error) << "the hero's pronoun";
  EXPECT_THROW(score(with("Lily was", "Mia was")), Error) << "the hero's name";
  EXPECT_THROW(score(with("Ashore", "Upstairs")), Error) << "another kind of place";
  EXPECT_THROW(score(with("it was", "they were")), Error) << "number";
  EXPECT_THROW(score(with(" Lily was happy but tired.", "")), Error) << "ends early";
  EXPECT_THROW(score(good + good), Error) << "two documents";
}

TEST(Corpus, DocumentsAreAFunctionOfSeedAndIndex) {
  const EmbeddedCorpus a(5), b(5), other(6);
  std::set<std::vector<int32_t>> different;
  for (const uint64_t i : {9, 3, 0, 9, 1 << 20}) {
    EXPECT_EQ(a.document(i).tokens, b.document(i).tokens);
    different.insert(a.document(i).tokens);
    different.insert(other.document(i).tokens);
  }
  EXPECT_EQ(different.size(), 8u);
  EXPECT_NE(a.document(uint64_t{1} << 40).tokens, a.document(0).tokens) << "high bits of the index count";
}

TEST(Corpus, TextRoundTripsAndReadsWell) {
  const EmbeddedCorpus corpus(2);
  std::set<int32_t> used;
  for (uint64_t i = 0; i < 5000; ++i) {
    const std::vector<int32_t> tokens = corpus.document(i).tokens;
    used.insert(tokens.begin(), tokens.end());
    const std::string text = corpus.tokenizer().decode(tokens);
    ASSERT_EQ(corpus.tokenizer().encode(text), tokens) << text;
    ASSERT_EQ(corpus.tokenizer().decode(corpus.tokenizer().encode(text)), text);
    ASSERT_TRUE(std::isupper(text.front()) && text.back() == '\n') << text;
    for (const char* ugly : {"  ", " .", " ,", " !", " ?", "\" \"\"", "``", "''"}) ASSERT_EQ(text.find(ugly), std::string::npos) << text;
  }
  EXPECT_EQ(static_cast<int64_t>(used.size()), corpus.tokenizer().vocab_size()) << "every word can occur";
}

TEST(WordTokenizer, HandlesWhatAModelOrAUserMayWrite) {
  const WordTokenizer t({"Hello", ",", "``", "''", "world", "."});
  EXPECT_EQ(t.decode(t.encode("\"Hello, world.\"\nHello")), "\"Hello, world.\"\nHello");
  EXPECT_EQ(t.encode(" Hello\t world "), (std::vector<int32_t>{1, 5}));
  EXPECT_EQ(t.decode(std::vector<int32_t>{1, 7, -1, 6}), "Hello <7> <-1>.");
  EXPECT_TRUE(t.encode("").empty());
  try {
    t.encode("Hello moon.");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("'moon' (at character 6"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace hlat
